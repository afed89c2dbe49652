// Runs the problems of a stream in a wasm module: node runner.mjs MODULE BLOCKS
import fs from "node:fs";
const { instance } = await WebAssembly.instantiate(fs.readFileSync(process.argv[2]), {});
const { memory, run_block, __heap_base, wrong_at } = instance.exports;
const blocks = fs.readFileSync(process.argv[3]);
const base = (__heap_base.value + 63) & ~63;
const room = 64 << 20;
memory.grow(room >> 16);
for (let at = 0, number = 0; at < blocks.length; number++) {
  const bytes = Number(blocks.readBigInt64LE(at));
  new Uint8Array(memory.buffer).set(blocks.subarray(at, at + bytes), base);
  let answer;
  try {
    answer = run_block(base, base + bytes, BigInt(room - bytes - 128));
  } catch (error) {
    answer = `trap ${error.message}`;
  }
  console.log(`${number} ${answer} ${new DataView(memory.buffer).getBigInt64(wrong_at.value, true)}`);
  at += bytes;
}
console.log("end");
