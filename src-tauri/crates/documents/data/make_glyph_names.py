#!/usr/bin/env python3
"""Makes glyph_names.deflate, the table of glyph names that crate `documents` reads fonts with.

    make_glyph_names.py glyphlist.txt zapfdingbats.txt

Both are Adobe's (github.com/adobe-type-tools/agl-aglfn, BSD-3-Clause, see LICENSE-glyph-names beside this file).
The result is raw deflate of lines `name;HEX[ HEX...]`, sorted by name; names of Zapf Dingbats begin with `!`.
"""

import pathlib
import sys
import zlib

# Adobe gave these code points of the private use area before Unicode had them.
ONCE_PRIVATE = {
    "copyrightsans": "00A9", "copyrightserif": "00A9", "registersans": "00AE", "registerserif": "00AE",
    "trademarksans": "2122", "trademarkserif": "2122", "dotlessj": "0237",
    "parenlefttp": "239B", "parenleftex": "239C", "parenleftbt": "239D",
    "parenrighttp": "239E", "parenrightex": "239F", "parenrightbt": "23A0",
    "bracketlefttp": "23A1", "bracketleftex": "23A2", "bracketleftbt": "23A3",
    "bracketrighttp": "23A4", "bracketrightex": "23A5", "bracketrightbt": "23A6",
    "bracelefttp": "23A7", "braceleftmid": "23A8", "braceleftbt": "23A9", "braceex": "23AA",
    "bracerighttp": "23AB", "bracerightmid": "23AC", "bracerightbt": "23AD",
    "radicalex": "203E", "arrowvertex": "23D0", "arrowhorizex": "23AF", "registered": "00AE",
    "hypheninferior": "208B", "hyphensuperior": "207B", "commasuperior": "002C", "periodsuperior": "002E",
    "commainferior": "002C", "periodinferior": "002E", "rupiah": "20A8", "onefitted": "0031",
    "threequartersemdash": "2014", "asuperior": "00AA", "osuperior": "00BA",
}
# Names in the fonts of TeX that Adobe's list lacks.
OF_TEX = {
    "Ng": "014A", "ng": "014B", "SS": "0053 0053", "visiblespace": "2423", "negationslash": "0338", "mapsto": "21A6",
    "angbracketleft": "27E8", "angbracketright": "27E9", "lscript": "2113", "similarequal": "2243",
    "precedesequal": "2AAF", "followsequal": "2AB0", "greatermuch": "226B", "lessmuch": "226A", "latticetop": "22A4",
    "star": "22C6", "epsilon1": "03F5", "vector": "20D7", "tie": "2040", "arrownortheast": "2197",
    "arrownorthwest": "2196", "arrowsoutheast": "2198", "arrowsouthwest": "2199", "slurabove": "2322",
    "slurbelow": "2323", "openbullet": "25E6", "turnstileleft": "22A2", "turnstileright": "22A3",
    "floorleft": "230A", "floorright": "230B", "ceilingleft": "2308", "ceilingright": "2309", "unionmulti": "228E",
    "unionsq": "2294", "intersectionsq": "2293", "subsetsqequal": "2291", "supersetsqequal": "2292",
    "squaresmallsolid": "25AA", "Ifractur": "2111", "Rfractur": "211C", "arrowbothv": "2195", "arrowdblbothv": "21D5",
    "coproduct": "2A3F", "equivasymptotic": "224D", "diamondmath": "22C4", "owner": "220B", "logicalnot": "00AC",
    "bardbl": "2016", "wreathproduct": "2240", "spadesuit": "2660", "heartsuit": "2661", "diamondsuit": "2662",
    "clubsuit": "2663", "sharp": "266F", "natural": "266E", "flat": "266D", "dotlessj": "0237",
    "quotedblbase": "201E", "quotesinglbase": "201A", "perthousandzero": "2031", "hyphenchar": "00AD",
    "commaaccent": "0326", "Germandbls": "1E9E",
}
FORMS = ("small", "oldstyle", "superior", "inferior")


def is_private(codes):
    return any(0xE000 <= int(code, 16) <= 0xF8FF for code in codes.split())


def read(path):
    lines = pathlib.Path(path).read_text(encoding="ascii").splitlines()
    pairs = (line.split(";")[:2] for line in lines if line and not line.startswith("#"))
    return {name.strip(): codes.split(",")[0].strip() for name, codes in pairs}


adobe, zapf = map(read, sys.argv[1:3])
names = {**OF_TEX, **adobe}
for name, codes in list(names.items()):
    if name in ONCE_PRIVATE:
        names[name] = ONCE_PRIVATE[name]
    elif is_private(codes):
        base = next((name.removesuffix(form) for form in FORMS if name.endswith(form)), name)
        base = base if base in names else base.capitalize()
        if base in names and not is_private(names[base]):
            names[name] = names[base]
        else:
            del names[name]
names.update({"!" + name: codes for name, codes in zapf.items()})
text = "".join(f"{name};{codes}\n" for name, codes in sorted(names.items()))
packer = zlib.compressobj(9, zlib.DEFLATED, -15)
packed = packer.compress(text.encode()) + packer.flush()
pathlib.Path(__file__).with_name("glyph_names.deflate").write_bytes(packed)
print(len(names), "names,", len(packed), "bytes")
