/* The mps2-an386 board of QEMU: vectors, start, a counter, and output through the debugger (semihosting).
   A real device has its vendor's start-up code instead of this file. */
#include <stdint.h>

int main(void);
void print_text(const char *text);
void print_number(float value, int decimals);
uint32_t instructions(void);
void reset(void);
void fault(void);

extern unsigned char bss_begin[], bss_end[], data_begin[], data_end[], data_in_flash[], stack_end[];

#define FPU_ACCESS (*(volatile uint32_t *)0xE000ED88u)
#define SYSTICK_CONTROL (*(volatile uint32_t *)0xE000E010u)
#define SYSTICK_RELOAD (*(volatile uint32_t *)0xE000E014u)
#define SYSTICK_VALUE (*(volatile uint32_t *)0xE000E018u)

static uint32_t debugger(uint32_t what, const void *argument) {
  register uint32_t r0 __asm__("r0") = what;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void print_text(const char *text) { (void)debugger(0x04, text); }

void print_number(float value, int decimals) {
  char digits[24];
  char *at = digits + sizeof digits - 1;
  float scale = 1;
  uint32_t whole;
  int i;
  for (i = 0; i < decimals; i++) scale *= 10;
  whole = (uint32_t)((value < 0 ? -value : value) * scale + 0.5f);
  *at = 0;
  for (i = 0; i <= decimals || whole; i++) {
    if (decimals && i == decimals) *--at = '.';
    *--at = (char)('0' + whole % 10);
    whole /= 10;
  }
  if (value < 0) *--at = '-';
  print_text(at);
}

/* Of which only differences below 2^24 ticks mean something. QEMU models no cycles: with -icount shift=0 an instruction
   takes a nanosecond, and the board's timer ticks every 40. */
uint32_t instructions(void) { return 40u * (0xFFFFFFu - SYSTICK_VALUE); }

static void leave(uint32_t status) {
  const uint32_t block[2] = {0x20026, status}; /* the program's end, with its status */
  for (;;) (void)debugger(0x20, block);
}

void reset(void) {
  unsigned char *at;
  const unsigned char *from = data_in_flash;
  FPU_ACCESS |= 0xFu << 20;
  __asm__ volatile("dsb\n isb");
  for (at = data_begin; at < data_end; at++) *(volatile unsigned char *)at = *from++;
  for (at = bss_begin; at < bss_end; at++) *(volatile unsigned char *)at = 0;
  SYSTICK_RELOAD = 0xFFFFFFu;
  SYSTICK_VALUE = 0;
  SYSTICK_CONTROL = 5;
  leave((uint32_t)main());
}

void fault(void) {
  print_text("fault\n");
  leave(9);
}

__attribute__((section(".vectors"), used)) static void (*const vectors[])(void) = {
    (void (*)(void))stack_end, reset, fault, fault, fault, fault, fault};
