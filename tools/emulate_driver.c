/* Runs kernels inside an emulator for tools/emulate.py, which writes the arguments and reads the results.

   Memory is one file that both sides map; here it appears piece by piece at the addresses asked for, and what was not
   asked for faults. Commands are blocks of eight 64-bit words on standard input, answers single words on standard
   output. A fault inside a kernel is an answer like any other: minus the number of the signal.

   The macros CONTROL_* and JOB_* (word numbers of the parallel loop's blocks) come from the compiler's command line. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int64_t word;
typedef void (*kernel)(void *args, word begin, word end, void *scratch);

extern void *const cg_linked[]; /* what the linker placed, in the order emulate.py gave */

static sigjmp_buf recovery;

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    fprintf(stderr, "signal %d at address %p\n", number, info->si_addr);
    if (syscall(SYS_gettid) != getpid()) _exit(1); /* a worker has nowhere to go back to */
    siglongjmp(recovery, number);
}

/* ---- the parallel loop under stress ---- */

static struct {
    word *control;
    void (*run)(void *job), (*worker)(void *control);
    word jobs, most_threads;
    _Atomic word faults, shared, sleeps;
} stress;

/* Sleeping may end early, so a call that fails goes unnoticed by the loop: it would only never sleep. */
static long checked_syscall(long number, void *address, int operation, int value, void *timeout) {
    long result = syscall(number, address, operation, value, timeout);
    if (result < 0 && errno != EAGAIN && errno != EINTR) stress.faults++;
    if (result == 0 && operation == 128) stress.sleeps++;
    return result;
}

static int checked_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    int result = pthread_cond_wait(condition, mutex);
    if (result) stress.faults++;
    stress.sleeps++;
    return result;
}

/* Adds one to the counter of each item; the workspace must stay this thread's own meanwhile. */
static void count(void *args, word begin, word end, void *scratch) {
    word *words = args, pauses = words[1];
    _Atomic word *counters = (_Atomic word *)words[0];
    volatile word *mine = scratch;
    for (word i = begin; i < end; i++) {
        counters[i]++;
        if (mine) *mine = i;
        for (volatile word n = 0; n < pauses; n++) {}
        if (mine && *mine != i) stress.faults++;
    }
    if (mine && mine != (word *)words[2]) stress.shared++;
}

static void *work(void *unused) {
    (void)unused;
    stress.worker(stress.control);
    return NULL;
}

enum { MOST_ITEMS = 64, STRIDE = 128 };

static void *call_many(void *seed_pointer) {
    unsigned seed = (unsigned)(uintptr_t)seed_pointer;
    word counters[MOST_ITEMS];
    char *scratch = aligned_alloc(STRIDE, STRIDE * 64);
    for (word n = 0; n < stress.jobs; n++) {
        word job[JOB_WORDS + 3];
        word items = 1 + rand_r(&seed) % MOST_ITEMS, uses_scratch = rand_r(&seed) % 2;
        memset(counters, 0, sizeof counters);
        job[JOB_CONTROL] = (word)stress.control;
        job[JOB_KERNEL] = (word)count;
        job[JOB_ITEMS] = items;
        job[JOB_GRAIN] = 1 + rand_r(&seed) % 9;
        job[JOB_SCRATCH] = uses_scratch ? (word)scratch : 0;
        job[JOB_SCRATCH_STRIDE] = uses_scratch ? STRIDE : 0;
        job[JOB_THREADS] = 1 + rand_r(&seed) % stress.most_threads;
        job[JOB_SPIN] = rand_r(&seed) % 2;
        job[JOB_WORDS] = (word)counters;
        job[JOB_WORDS + 1] = rand_r(&seed) % 4 ? 0 : 300;
        job[JOB_WORDS + 2] = (word)scratch;
        stress.run(job);
        for (word i = 0; i < MOST_ITEMS; i++)
            if (counters[i] != (i < items)) stress.faults++;
        if (n % 500 == 0) usleep(1000); /* lets the workers park */
    }
    free(scratch);
    return NULL;
}

/* Arguments: addresses of run, worker and stop; jobs, workers, callers, whether to park on a condition variable.
   Answers the number of mistakes. */
static word run_stress(const word *a) {
    enum { MOST = 64 };
    static word block[CONTROL_WORDS] __attribute__((aligned(128)));
    void (*stop)(void *) = (void (*)(void *))a[2];
    word workers = a[4], callers = a[5];
    pthread_t threads[MOST], others[MOST];
    memset(block, 0, sizeof block);
    block[CONTROL_YIELD] = (word)sched_yield;
    block[CONTROL_SHORT_SPIN] = 20;
    block[CONTROL_LONG_SPIN] = 200;
    if (a[6]) {
        pthread_mutex_init((pthread_mutex_t *)&block[CONTROL_MUTEX], NULL);
        pthread_cond_init((pthread_cond_t *)&block[CONTROL_CONDITION], NULL);
        block[CONTROL_WAIT] = (word)checked_wait;
        block[CONTROL_WAKE] = (word)pthread_cond_broadcast;
        block[CONTROL_LOCK] = (word)pthread_mutex_lock;
        block[CONTROL_UNLOCK] = (word)pthread_mutex_unlock;
    } else {
        block[CONTROL_FUTEX] = FUTEX_NUMBER; /* our table's, not this system's header's */
        block[CONTROL_WAIT] = block[CONTROL_WAKE] = (word)checked_syscall;
    }
    stress.control = block;
    stress.run = (void (*)(void *))a[0];
    stress.worker = (void (*)(void *))a[1];
    stress.jobs = a[3];
    stress.most_threads = workers + 1;
    stress.faults = stress.shared = stress.sleeps = 0;
    if (workers >= MOST || callers >= MOST) return -1;
    for (word i = 0; i < workers; i++)
        if (pthread_create(&threads[i], NULL, work, NULL)) return -1;
    for (word i = 1; i < callers; i++)
        if (pthread_create(&others[i], NULL, call_many, (void *)(uintptr_t)(i + 1))) return -1;
    call_many((void *)(uintptr_t)1);
    for (word i = 1; i < callers; i++) pthread_join(others[i], NULL);
    stop(block);
    for (word i = 0; i < workers; i++) pthread_join(threads[i], NULL);
    if (block[CONTROL_STARTED] || block[CONTROL_PARKED] || block[CONTROL_BUSY]) stress.faults++;
    return stress.faults;
}

/* ---- commands ---- */

static word obey(const word *c, int file) {
    void *at = (void *)c[1];
    switch (c[0]) {
    case 1: /* map: address, bytes, protection, offset in the file */
        return mmap(at, c[2], (int)c[3], MAP_SHARED | MAP_FIXED, file, c[4]) == at ? 0 : -1;
    case 2: /* forget: address, bytes; the addresses stay taken so that touching them faults */
        return mmap(at, c[2], PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at ? 0 : -1;
    case 3: /* where the linker put a kernel: its number */
        return (word)cg_linked[c[1]];
    case 4: /* call: kernel, args, begin, end, scratch */
        ((kernel)at)((void *)c[2], c[3], c[4], (void *)c[5]);
        return 0;
    case 5:
        return run_stress(c + 1);
    case 6: /* chunks that workers ran in the last stress */
        return stress.shared;
    case 7: /* sleeps that somebody ended */
        return stress.sleeps;
    default:
        return -1;
    }
}

static int all(ssize_t (*move)(int, void *, size_t), int fd, void *bytes, size_t left) {
    for (char *at = bytes; left;) {
        ssize_t done = move(fd, at, left);
        if (done <= 0) return 0;
        at += done;
        left -= done;
    }
    return 1;
}

static ssize_t put(int fd, void *bytes, size_t count) { return write(fd, bytes, count); }

int main(int argc, char **argv) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    int file = argc == 2 ? open(argv[1], O_RDWR) : -1;
    if (file < 0) return 2;
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &action, NULL);
    word command[8];
    while (all(read, 0, command, sizeof command)) {
        alarm(PATIENCE + 5); /* ends this program if whoever started it is gone */
        int number = sigsetjmp(recovery, 1);
        word answer = number ? -number : obey(command, file);
        if (!all(put, 1, &answer, sizeof answer)) return 1;
    }
    return 0;
}
