/* Starts a program on a Cortex-M of QEMU whose printf goes to the host (semihosting). Memory as in thumb.ld. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void initialise_monitor_handles(void);
extern char bss_start, bss_end, stack_top;
int main(void);
void _fini(void) {}
void _init(void) {}

static void reset(void) {
  *(volatile unsigned *)0xE000ED88 |= 0xfu << 20; /* the floating-point unit on */
  __asm volatile("dsb\n isb");
  memset(&bss_start, 0, (size_t)(&bss_end - &bss_start));
  initialise_monitor_handles();
  exit(main());
}

static void fault(void) {
  puts("fault");
  exit(9);
}

__attribute__((section(".vectors"), used)) void *const vectors[] = {
    &stack_top, (void *)reset, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault};
