#!/bin/sh
# Exports a layer for the Cortex-M4, builds the program around it, and runs it in QEMU.
# Needs convgrad, gcc for arm-none-eabi and qemu-system-arm (Debian: gcc-arm-none-eabi qemu-system-arm).
set -eu
cd "$(dirname "$0")"
out=${OUT:-build}
convgrad=${CONVGRAD:-convgrad}
$convgrad export 'depthwise_conv2d 1x12x12x8 3x3x8x1' 'depthwise_conv2d_backprop_filter 1x12x12x8 3x3x8x1' \
  -o "$out/pack" --name layer --target cortex_m4 --force
arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -std=c11 -O2 -ffreestanding \
  -Wall -Wextra -ffunction-sections -fdata-sections -Wl,--gc-sections -Wl,-z,noexecstack -nostartfiles -nostdlib -T mps2.ld \
  -I"$out/pack" main.c board.c "$out/pack/layer.c" "$out/pack/liblayer.a" -lgcc -o "$out/learn.elf"
arm-none-eabi-size "$out/learn.elf"
qemu-system-arm -M mps2-an386 -nographic -monitor none -serial none \
  -semihosting-config enable=on,target=native -icount shift=0 -kernel "$out/learn.elf"
