/* All of a C library that a self-test needs, for wasm without one: JavaScript prints (run_wasm.mjs). */
#ifndef STDIO_H
#define STDIO_H
int printf(const char *format, ...);
#endif
