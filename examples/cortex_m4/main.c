/* On-device learning on a Cortex-M4: a sensor's depthwise layer drifts, and the device finds its filter again by
   gradient descent. Forward and filter gradient are kernels of a pack; nothing is allocated. */
#include "layer.h"

enum { SIDE = 12, CHANNELS = 8, WINDOW = 3, STEPS = 60 };

#define PIXELS (SIDE * SIDE * CHANNELS)
#define TAPS (WINDOW * WINDOW * CHANNELS)

/* Of the board and the debugger, in board.c. */
void print_text(const char *text);
void print_number(float value, int decimals);
uint32_t instructions(void);
int main(void);

static float image[PIXELS], output[PIXELS], target[PIXELS], gradient[PIXELS];
static float taps[TAPS], truth[TAPS], taps_gradient[TAPS];
static _Alignas(CG_SCRATCH_ALIGN) unsigned char scratch[layer_SCRATCH];

static float noise(void) {
  static uint32_t state = 1;
  state = state * 1664525u + 1013904223u;
  return (float)(int32_t)state / 2147483648.0f;
}

static int forward(const float *filter, float *to) {
  return layer_depthwise_forward_f32_1x12x12x8_k3x3_o8_same(image, filter, to, scratch, sizeof scratch);
}

static int filter_gradient(void) {
  return layer_depthwise_dw_f32_1x12x12x8_k3x3_o8_same(image, gradient, taps_gradient, scratch, sizeof scratch);
}

static float apart(void) {
  float most = 0;
  int i;
  for (i = 0; i < TAPS; i++) {
    const float away = taps[i] < truth[i] ? truth[i] - taps[i] : taps[i] - truth[i];
    if (away > most) most = away;
  }
  return most;
}

int main(void) {
  int i, step;
  for (i = 0; i < PIXELS; i++) image[i] = noise();
  for (i = 0; i < TAPS; i++) truth[i] = noise();
  if (forward(truth, target) != CG_OK) return 2;
  print_text("step  loss      instructions of the filter gradient\n");
  for (step = 0; step <= STEPS; step++) {
    float loss = 0;
    uint32_t began;
    if (forward(taps, output) != CG_OK) return 3;
    for (i = 0; i < PIXELS; i++) {
      const float away = output[i] - target[i];
      loss += away * away / PIXELS;
      gradient[i] = away / (SIDE * SIDE);
    }
    began = instructions();
    if (filter_gradient() != CG_OK) return 4;
    began = instructions() - began;
    if (step % 10 == 0) {
      print_number((float)step, 0);
      print_text("    ");
      print_number(loss, 6);
      print_text("  ");
      print_number((float)began, 0);
      print_text("\n");
    }
    for (i = 0; i < TAPS; i++) taps[i] -= 1.5f * taps_gradient[i];
  }
  print_text("largest error of a tap: ");
  print_number(apart(), 6);
  print_text(apart() < 1e-3f ? ", learnt\n" : ", NOT LEARNT\n");
  return apart() < 1e-3f ? 0 : 1;
}
