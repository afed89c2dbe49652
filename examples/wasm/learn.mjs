// Learns the filter somebody applied to a picture: forward, compare, filter gradient, step.
// Runs in browsers and in node; everything slow is in the module.

/** Open the module's memory as arrays of floats. */
export async function open(bytes) {
  const { instance } = await WebAssembly.instantiate(bytes, {});
  const calls = instance.exports;
  const side = calls.side(), channels = calls.channels(), window = calls.window();
  const floats = (call, count) => new Float32Array(calls.memory.buffer, call(), count);
  const pixels = side * side * channels, taps = window * window * channels;
  return {
    side, channels, window,
    image: floats(calls.image, pixels),
    taps: floats(calls.taps, taps),
    output: floats(calls.output, pixels),
    outputGradient: floats(calls.output_gradient, pixels),
    tapsGradient: floats(calls.taps_gradient, taps),
    forward: () => checked(calls.forward()),
    filterGradient: () => checked(calls.filter_gradient()),
  };
}

function checked(code) {
  if (code !== 0) throw new Error(`convgrad_pack.h: code ${code}`);
}

/** Known filters, as a function of row and column from the centre. */
export const FILTERS = {
  blur: (r, c) => Math.exp(-(r * r + c * c) / 2) / 6.05,
  edges: (r, c) => (c === 0 ? 0 : Math.sign(c) * Math.exp(-(r * r + c * c) / 2)),
  sharpen: (r, c) => (r === 0 && c === 0 ? 1.5 : -Math.exp(-(r * r + c * c)) / 4),
  motion: (r, c) => (r === c ? 0.2 : 0),
};

/** The taps of a known filter, the same for every channel, in the module's order. */
export function tapsOf(module, name) {
  const half = (module.window - 1) / 2, found = [];
  for (let r = -half; r <= half; r++) {
    for (let c = -half; c <= half; c++) {
      for (let k = 0; k < module.channels; k++) found.push(FILTERS[name](r, c));
    }
  }
  return Float32Array.from(found);
}

/** A picture to learn from: discs on a slope, with grain, which makes every tap matter. */
export function drawPicture(module, seed = 1) {
  let state = seed >>> 0;
  const random = () => ((state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32);
  const { side, channels, image } = module;
  const discs = Array.from({ length: 14 }, () => ({
    y: random() * side, x: random() * side, r: 5 + random() * 14, colour: [random(), random(), random()],
  }));
  for (let y = 0, at = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      for (let k = 0; k < channels; k++) {
        let value = (y + (k + 1) * x) / (4 * side);
        for (const d of discs) if ((y - d.y) ** 2 + (x - d.x) ** 2 < d.r * d.r) value = d.colour[k % 3];
        image[at++] = value + 0.2 * (random() - 0.5);
      }
    }
  }
}

/** Gradient descent with Adam on the mean squared difference from a target. */
export class Learner {
  constructor(module, name) {
    this.module = module;
    this.truth = tapsOf(module, name);
    module.taps.set(this.truth);
    module.forward();
    this.target = module.output.slice();
    module.taps.fill(0);
    this.steps = 0;
    this.mean = new Float64Array(this.truth.length);
    this.square = new Float64Array(this.truth.length);
  }

  /** One step; returns the loss before it. */
  step(rate = 0.05) {
    const { module, target } = this;
    module.forward();
    let loss = 0;
    for (let i = 0; i < target.length; i++) {
      const away = module.output[i] - target[i];
      loss += (away * away) / target.length;
      module.outputGradient[i] = (2 * away) / target.length;
    }
    module.filterGradient();
    this.steps++;
    const settle = rate / (1 + this.steps / 250);
    for (let i = 0; i < this.truth.length; i++) {
      const g = module.tapsGradient[i];
      this.mean[i] += 0.1 * (g - this.mean[i]);
      this.square[i] += 0.001 * (g * g - this.square[i]);
      const mean = this.mean[i] / (1 - 0.9 ** this.steps);
      module.taps[i] -= (settle * mean) / (Math.sqrt(this.square[i] / (1 - 0.999 ** this.steps)) + 1e-9);
    }
    return loss;
  }

  /** The largest difference between a learnt tap and the true one. */
  error() {
    return Math.max(...this.truth.map((value, i) => Math.abs(value - this.module.taps[i])));
  }
}
