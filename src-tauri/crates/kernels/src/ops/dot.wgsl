// Sums and maxima over a workgroup of LANES, as a binary tree over neighbours, so that subgroups and memory give the same
// bits. Lanes of a subgroup need no memory. All lanes must call. Acts as a barrier: earlier writes to workgroup memory are
// visible to all lanes afterwards.
#ifdef SUBGROUPS
const N_PARTS = LANES >> SHUFFLES;
var<workgroup> parts_: array<f32, N_PARTS>;

fn bring(lane: u32, value: f32) {
  // all lanes have read the previous contents
  workgroupBarrier();
  if (lane % (1u << SHUFFLES) == 0u) {
    parts_[lane >> SHUFFLES] = value;
  }
  workgroupBarrier();
}

fn sum_lanes(lane: u32, value: f32) -> f32 {
  var sum = value;
#repeat STEP SHUFFLES
  sum += subgroupShuffleXor(sum, 1u << STEP);
#end
  bring(lane, sum);
  if (N_PARTS <= 1u << SHUFFLES) {
    sum = parts_[lane % N_PARTS];
    for (var n = 1u; n < N_PARTS; n *= 2u) {
      sum += subgroupShuffleXor(sum, n);
    }
    return sum;
  }
  var parts = parts_;
  for (var n = 1u; n < N_PARTS; n *= 2u) {
    for (var i = 0u; i < N_PARTS; i += 2u * n) {
      parts[i] += parts[i + n];
    }
  }
  return parts[0];
}

fn max_lanes(lane: u32, value: f32) -> f32 {
  var most = value;
#repeat STEP SHUFFLES
  most = max(most, subgroupShuffleXor(most, 1u << STEP));
#end
  bring(lane, most);
  most = parts_[0];
  for (var i = 1u; i < N_PARTS; i++) {
    most = max(most, parts_[i]);
  }
  return most;
}
#else
var<workgroup> lanes_: array<f32, LANES>;

fn sum_lanes(lane: u32, value: f32) -> f32 {
  lanes_[lane] = value;
  workgroupBarrier();
  for (var n = 1u; n < LANES; n *= 2u) {
    if (lane % (2u * n) == 0u) {
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
  for (var n = 1u; n < LANES; n *= 2u) {
    if (lane % (2u * n) == 0u) {
      lanes_[lane] = max(lanes_[lane], lanes_[lane + n]);
    }
    workgroupBarrier();
  }
  let most = lanes_[0];
  workgroupBarrier();
  return most;
}
#endif
