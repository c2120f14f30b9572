// One step as the host fills it in: how many rows, and where sections of `rows` begin.
struct Step {
  n_tokens: u32,
  n_outputs: u32,
  // length of a section
  stride: u32,
  // chunks of attention of the longest context
  n_chunks: u32,
  // where angles begin in `rows`
  angles: u32,
  // columns that are selected of a row of the output
  n_wanted: u32,
  spare: vec2<u32>,
}
@group(0) @binding(0) var<uniform> step: Step;

const TOKENS = 0u;
const POSITIONS = 1u;
// pages that a row's keys and values are written to: of layers that keep everything, and of those with a window
const PAGES = 2u;
const WINDOW_PAGES = 3u;
const STATES = 4u;
const OUTPUTS = 5u;
// where a row's page tables begin in `rows`
const TABLES = 6u;
const WINDOW_TABLES = 7u;
// how many positions a row's sequence has after the step
const ENDS = 8u;
// stands where every row has a zero
const NO_SECTION = 0xffffffffu;

const PAGE_LEN = 32u;

// The number of a workgroup where one dimension is too short for all of them.
fn flat(id: vec3<u32>, groups: vec3<u32>) -> u32 {
  return id.y * groups.x + id.x;
}

// What tells a lane its number in the workgroup, and the number: lanes of a subgroup are neighbours.
#ifdef SUBGROUPS
#define LANE_BUILTINS @builtin(subgroup_id) g_: u32, @builtin(subgroup_size) n_: u32, @builtin(subgroup_invocation_id) i_: u32
#define LANE g_ * n_ + i_
#else
#define LANE_BUILTINS @builtin(local_invocation_index) lane_: u32
#define LANE lane_
#endif
