// The maximum and the sum over the lanes of an attention workgroup, for each query, as a binary tree over neighbours with
// both lane reductions. Acts as a barrier: earlier writes are visible to all lanes afterwards.

// lanes of the second stage of a reduction, and how many inputs each of them takes
#define FEW 16u
#define NEIGHBOURS 16u
#ifdef SUBGROUPS
const N_PARTS = LANES >> SHUFFLES;
// used alternately, so that none is written while another lane still reads it
var<workgroup> maxima: array<vec4<f32>, FOURS * N_PARTS>;
var<workgroup> totals: array<vec4<f32>, FOURS * N_PARTS>;
#else
var<workgroup> lanes: array<vec4<f32>, FOURS * LANES>;
var<workgroup> few: array<vec4<f32>, FOURS * FEW>;
#endif

#ifdef SUBGROUPS
fn largest_of(lane: u32, mine: array<vec4<f32>, FOURS>) -> array<vec4<f32>, FOURS> {
  var found = mine;
#repeat V FOURS
  {
#repeat STEP SHUFFLES
    found[V] = max(found[V], subgroupShuffleXor(found[V], 1u << STEP));
#end
    if (lane % (1u << SHUFFLES) == 0u) {
      maxima[V * N_PARTS + (lane >> SHUFFLES)] = found[V];
    }
  }
#end
  workgroupBarrier();
#repeat V FOURS
  {
    for (var i = 0u; i < N_PARTS; i++) {
      found[V] = max(found[V], maxima[V * N_PARTS + i]);
    }
  }
#end
  return found;
}

fn sum_of(lane: u32, mine: array<vec4<f32>, FOURS>) -> array<vec4<f32>, FOURS> {
  var found = mine;
#repeat V FOURS
  {
#repeat STEP SHUFFLES
    found[V] += subgroupShuffleXor(found[V], 1u << STEP);
#end
    if (lane % (1u << SHUFFLES) == 0u) {
      totals[V * N_PARTS + (lane >> SHUFFLES)] = found[V];
    }
  }
#end
  workgroupBarrier();
#repeat V FOURS
  {
    if (N_PARTS <= 1u << SHUFFLES) {
      found[V] = totals[V * N_PARTS + lane % N_PARTS];
      for (var n = 1u; n < N_PARTS; n *= 2u) {
        found[V] += subgroupShuffleXor(found[V], n);
      }
    } else {
      var parts: array<vec4<f32>, N_PARTS>;
      for (var i = 0u; i < N_PARTS; i++) {
        parts[i] = totals[V * N_PARTS + i];
      }
      for (var n = 1u; n < N_PARTS; n *= 2u) {
        for (var i = 0u; i < N_PARTS; i += 2u * n) {
          parts[i] += parts[i + n];
        }
      }
      found[V] = parts[0];
    }
  }
#end
  return found;
}
#else
fn largest_of(lane: u32, mine: array<vec4<f32>, FOURS>) -> array<vec4<f32>, FOURS> {
  var found = mine;
#repeat V FOURS
  {
    lanes[V * LANES + lane] = mine[V];
  }
#end
  workgroupBarrier();
  if (lane < FEW * FOURS) {
    let at = lane / FEW * LANES + lane % FEW * NEIGHBOURS;
    var largest = lanes[at];
    for (var i = 1u; i < NEIGHBOURS; i++) {
      largest = max(largest, lanes[at + i]);
    }
    few[lane] = largest;
  }
  workgroupBarrier();
#repeat V FOURS
  {
    for (var i = 0u; i < FEW; i++) {
      found[V] = max(found[V], few[V * FEW + i]);
    }
  }
#end
  return found;
}

fn sum_of(lane: u32, mine: array<vec4<f32>, FOURS>) -> array<vec4<f32>, FOURS> {
  var found = mine;
#repeat V FOURS
  {
    lanes[V * LANES + lane] = mine[V];
  }
#end
  workgroupBarrier();
  if (lane < FEW * FOURS) {
    let at = lane / FEW * LANES + lane % FEW * NEIGHBOURS;
    var parts: array<vec4<f32>, NEIGHBOURS>;
    for (var i = 0u; i < NEIGHBOURS; i++) {
      parts[i] = lanes[at + i];
    }
    for (var n = 1u; n < NEIGHBOURS; n *= 2u) {
      for (var i = 0u; i < NEIGHBOURS; i += 2u * n) {
        parts[i] += parts[i + n];
      }
    }
    few[lane] = parts[0];
  }
  workgroupBarrier();
#repeat V FOURS
  {
    var parts: array<vec4<f32>, FEW>;
    for (var i = 0u; i < FEW; i++) {
      parts[i] = few[V * FEW + i];
    }
    for (var n = 1u; n < FEW; n *= 2u) {
      for (var i = 0u; i < FEW; i += 2u * n) {
        parts[i] += parts[i + n];
      }
    }
    found[V] = parts[0];
  }
#end
  return found;
}
#endif
