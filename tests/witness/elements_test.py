"""Bits to numbers, against known answers."""

import unittest

import elements


class Elements(unittest.TestCase):
    """Known answers: the extremes that the OCP documents and docs/format/format.md give."""

    def test_small_floats_have_their_extremes(self):
        for dtype, code, value in (
            ("f8_e4m3", 0x7E, 448.0),
            ("f8_e4m3", 0x01, 2.0**-9),
            ("f8_e4m3", 0x80, -0.0),
            ("f8_e5m2", 0x7B, 57344.0),
            ("f8_e5m2", 0xFC, float("-inf")),
            ("f8_e5m2", 0x01, 2.0**-16),
            ("f8_e4m3fnuz", 0x7F, 240.0),
            ("f8_e4m3fnuz", 0x01, 2.0**-10),
            ("f8_e5m2fnuz", 0x7F, 57344.0),
            ("f8_e5m2fnuz", 0x01, 2.0**-17),
            ("f8_e8m0", 0x7F, 1.0),
            ("f8_e8m0", 0x00, 2.0**-127),
            ("f8_e8m0", 0xFE, 2.0**127),
            ("f6_e2m3", 0x1F, 7.5),
            ("f6_e2m3", 0x21, -0.125),
            ("f6_e3m2", 0x1F, 28.0),
            ("f6_e3m2", 0x01, 0.0625),
            ("f4_e2m1", 0x07, 6.0),
            ("f4_e2m1", 0x09, -0.5),
        ):
            found = elements.values(dtype, bytes([code]), 1)[0]
            self.assertEqual((found, str(found)), (value, str(value)), f"{dtype} {code:02x}")
        for dtype, code in (
            ("f8_e4m3", 0x7F),
            ("f8_e5m2", 0x7D),
            ("f8_e4m3fnuz", 0x80),
            ("f8_e5m2fnuz", 0x80),
            ("f8_e8m0", 0xFF),
        ):
            self.assertEqual(str(elements.values(dtype, bytes([code]), 1)[0]), "nan", dtype)

    def test_packed_elements_come_lowest_bits_first(self):
        self.assertEqual(elements.values("i4", b"\x21\x0f", 3), [1, 2, -1])
        self.assertEqual(elements.values("u2", b"\xe4", 4), [0, 1, 2, 3])
        self.assertEqual(elements.values("ternary", b"\x34", 3), [0, 1, -1])
        self.assertEqual(elements.values("binary", b"\x05", 3), [1, -1, 1])
        three = (0x1F | 0x08 << 6 | 0x20 << 12).to_bytes(3, "little")
        self.assertEqual(elements.values("f6_e2m3", three, 3), [7.5, 1.0, -0.0])

    def test_illegal_ternary_code_is_refused(self):
        with self.assertRaisesRegex(ValueError, "element 1"):
            elements.values("ternary", b"\x08", 2)


if __name__ == "__main__":
    unittest.main()
