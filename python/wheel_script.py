#!python
"""The program of the wheel that this script came with. Finds the package and does not import it: that takes longer."""

import importlib.util
import os
import sys

found = importlib.util.find_spec("thalia_checkpoint")
if found is None or not found.submodule_search_locations:
    sys.exit("thalia: the Python package thalia_checkpoint, which holds the program, is not installed for this Python")
program = os.path.join(found.submodule_search_locations[0], "_program", "thalia")
if not os.access(program, os.X_OK):
    sys.exit(f"thalia: {program} is not there: please install the wheel of thalia-checkpoint again")
os.execv(program, ["thalia", *sys.argv[1:]])
