// Runs the `test_main` of a wasm module that prints with printf of %s and %lu, and ends with its status.
import { readFileSync } from "node:fs";

let memory;
const text = (at) => {
  const bytes = new Uint8Array(memory.buffer);
  return new TextDecoder().decode(bytes.subarray(at, bytes.indexOf(0, at)));
};
const printf = (format, given) => {
  const words = new DataView(memory.buffer);
  const line = text(format).replace(/%(lu|s)/g, (_, kind) => {
    const word = words.getUint32(given, true);
    given += 4;
    return kind === "s" ? text(word) : String(word);
  });
  process.stdout.write(line);
  return line.length;
};
const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[2]), { env: { printf } });
memory = instance.exports.memory;
process.exitCode = instance.exports.test_main();
