// The colour bar under a heat map, and the colours of what is not finite if there is any.

import {
  css,
  gradientOf,
  MINUS_INFINITY_COLOUR,
  NAN_COLOUR,
  PLUS_INFINITY_COLOUR,
  type Extremes,
  type Scale,
} from './colours';
import { formatCount, formatNumber } from './numbers';

export function Legend({ scale, whole, compact }: { scale: Scale; whole: Extremes; compact: boolean }) {
  const odd = [
    { name: 'NaN', count: whole.nan, colour: NAN_COLOUR },
    { name: '+inf', count: whole.plus, colour: PLUS_INFINITY_COLOUR },
    { name: '−inf', count: whole.minus, colour: MINUS_INFINITY_COLOUR },
  ].filter(({ count }) => count > 0);
  const digits = compact ? 3 : 6;
  return (
    <div className="v-legend">
      <span>{formatNumber(scale.low, digits)}</span>
      <i className="v-bar" style={{ background: gradientOf(scale.kind) }} />
      <span>{formatNumber(scale.high, digits)}</span>
      {odd.map(({ name, count, colour }) => (
        <span key={name} className="v-odd">
          <i style={{ background: css(colour) }} />
          {compact ? name : `${name} ${formatCount(count)}`}
        </span>
      ))}
    </div>
  );
}
