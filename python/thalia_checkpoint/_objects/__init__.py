"""Whole objects as trees and arrays, without a framework."""
