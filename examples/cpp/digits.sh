#!/bin/sh
# Trains digits.cc on plain loops, records its convolutions, exports them as a pack, and trains on that.
# Needs convgrad, scikit-learn and g++ (CXX=clang++ works as well).
set -eu
cd "$(dirname "$0")"
out=${OUT:-build}
convgrad=${CONVGRAD:-convgrad}
python=${PYTHON:-python3}
compile="${CXX:-g++} -std=c++17 -O2 -pthread"
include=$($convgrad info --include)
mkdir -p "$out"
"$python" digits_data.py "$out/digits.bin"

$compile -I"$include/shim" -I"$include" digits.cc -o "$out/plain"
rm -f "$out/problems.txt"
echo "== plain loops, one epoch"
CONVGRAD_RECORD="$out/problems.txt" "$out/plain" "$out/digits.bin" 1 || true # one epoch is too few to learn
echo "== export"
$convgrad export "$out/problems.txt" -o "$out/pack" --name digits --target host --force
$compile -I"$include/shim" -I"$include" -I"$out/pack" digits.cc use_pack.cc "$out/pack/digits.c" "$out/pack/libdigits.a" \
  -o "$out/fast"
echo "== pack"
"$out/fast" "$out/digits.bin" "${EPOCHS:-20}"
