/* What the page calls: two convolutions of a pack, on memory that is inside the module. */
#include "filters.h"

enum { SIDE = 96, CHANNELS = 3, WINDOW = 5 };

#define PIXELS (SIDE * SIDE * CHANNELS)
#define TAPS (WINDOW * WINDOW * CHANNELS)
#define EXPORT(name) __attribute__((export_name(name)))

static float image[PIXELS], output[PIXELS], output_gradient[PIXELS];
static float taps[TAPS], taps_gradient[TAPS];
static _Alignas(CG_SCRATCH_ALIGN) unsigned char scratch[filters_SCRATCH];

EXPORT("image") float *image_at(void) { return image; }
EXPORT("taps") float *taps_at(void) { return taps; }
EXPORT("output") float *output_at(void) { return output; }
EXPORT("output_gradient") float *output_gradient_at(void) { return output_gradient; }
EXPORT("taps_gradient") float *taps_gradient_at(void) { return taps_gradient; }
EXPORT("side") int side(void) { return SIDE; }
EXPORT("channels") int channels(void) { return CHANNELS; }
EXPORT("window") int window(void) { return WINDOW; }

/* output = image * taps, each channel with its own. Returns a code of convgrad_pack.h, 0 if all is well. */
EXPORT("forward") int forward(void) {
  return filters_depthwise_forward_f32_1x96x96x3_k5x5_o3_same(image, taps, output, scratch,
                                                              sizeof scratch);
}

/* taps_gradient: how the output's gradient changes with each tap. */
EXPORT("filter_gradient") int filter_gradient(void) {
  return filters_depthwise_dw_f32_1x96x96x3_k5x5_o3_same(image, output_gradient, taps_gradient,
                                                         scratch, sizeof scratch);
}
