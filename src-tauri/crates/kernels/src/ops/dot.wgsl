// Sums and maxima over a workgroup of LANES, in an order that depends on nothing but LANES. Every lane calls.
var<workgroup> lanes_: array<f32, LANES>;

fn sum_lanes(lane: u32, value: f32) -> f32 {
  lanes_[lane] = value;
  workgroupBarrier();
  for (var n = LANES / 2u; n > 0u; n /= 2u) {
    if (lane < n) {
      lanes_[lane] += lanes_[lane + n];
    }
    workgroupBarrier();
  }
  let sum = lanes_[0];
  workgroupBarrier();
  return sum;
}

fn max_lanes(lane: u32, value: f32) -> f32 {
  lanes_[lane] = value;
  workgroupBarrier();
  for (var n = LANES / 2u; n > 0u; n /= 2u) {
    if (lane < n) {
      lanes_[lane] = max(lanes_[lane], lanes_[lane + n]);
    }
    workgroupBarrier();
  }
  let most = lanes_[0];
  workgroupBarrier();
  return most;
}
