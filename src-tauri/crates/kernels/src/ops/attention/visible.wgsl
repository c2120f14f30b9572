// The positions that a row of attention sees, as `visible.rs` says. The importing shader declares `rows`, and `window`
// among its parameters. AHEAD is 0 for rows that see earlier positions alone; 1: later ones too; 2: those of their image;
// 3: all earlier ones but the first.

// The first and the last visible position of a row.
fn seen(row: u32) -> vec2<u32> {
  let position = rows[POSITIONS * step.stride + row];
  var first = select(0u, position + 1u - min(p.window, position + 1u), p.window > 0u);
  if (AHEAD == 3u) {
    first = max(first, 1u);
  }
  var last = position;
  if (AHEAD == 1u) {
    last = rows[ENDS * step.stride + row] - 1u;
    if (p.window > 0u) {
      last = min(last, position + min(p.window - 1u, last - position));
    }
  }
  if (AHEAD == 2u) {
    last = max(last + 1u, rows[IMAGE_ENDS * step.stride + row]) - 1u;
  }
  return vec2(first, last);
}
