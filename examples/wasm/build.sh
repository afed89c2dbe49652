#!/bin/sh
# Exports two convolutions for WebAssembly, compiles the few lines of C around them, and links filters.wasm.
# Needs convgrad, clang and wasm-ld (Debian: clang lld). TARGET=wasm builds without SIMD.
set -eu
cd "$(dirname "$0")"
out=${OUT:-build}
convgrad=${CONVGRAD:-convgrad}
clang=${CLANG:-clang}
$convgrad export 'depthwise_conv2d 1x96x96x3 5x5x3x1' 'depthwise_conv2d_backprop_filter 1x96x96x3 5x5x3x1' \
  -o "$out/pack" --name filters --target "${TARGET:-wasm_simd}" --force
for source in filters_wasm.c "$out/pack/filters.c"; do
  $clang --target=wasm32 -O2 -ffreestanding -nostdlib -I"$out/pack" -c "$source" -o "$out/$(basename "$source" .c).o"
done
wasm-ld --no-entry --gc-sections --strip-all "$out/filters_wasm.o" "$out/filters.o" "$out/pack/libfilters.a" \
  -o "$out/filters.wasm"
cp index.html learn.mjs "$out"
ls -l "$out/filters.wasm" | awk '{print $NF ": " $5 " bytes"}'
echo "now: python3 -m http.server --directory $out 8000, and open http://localhost:8000"
