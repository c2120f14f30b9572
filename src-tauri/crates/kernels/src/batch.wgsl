// The batch as the host fills it in: number of rows, and offsets of the sections of `rows`.
struct Step {
  n_tokens: u32,
  n_outputs: u32,
  // length of a section
  stride: u32,
  // attention chunks of the longest context
  n_chunks: u32,
  // offset of the angles in `rows`
  angles: u32,
  // columns selected per row of the output
  n_selected: u32,
  // offset of given values in `rows`
  given: u32,
  spare: u32,
}
@group(0) @binding(0) var<uniform> step: Step;

const TOKENS = 0u;
const POSITIONS = 1u;
// page that a row's key and value are written to: in layers that retain all positions, and in those with a window
const PAGES = 2u;
const WINDOW_PAGES = 3u;
const STATES = 4u;
const OUTPUTS = 5u;
// offsets of a row's page tables in `rows`
const TABLES = 6u;
const WINDOW_TABLES = 7u;
// length of a row's sequence after the batch
const ENDS = 8u;
// kind of a row, such as the first or second text of a pair
const KINDS = 9u;
// number of a given row, counted from 1; 0: not given
const GIVEN = 10u;
// first position after the image that a row is in; 0: in none
const IMAGE_ENDS = 11u;

const PAGE_LEN = 32u;

// The index of a workgroup over two dimensions, since one is limited.
fn flat(id: vec3<u32>, groups: vec3<u32>) -> u32 {
  return id.y * groups.x + id.x;
}

// The builtins for a lane's index in the workgroup, and the index; lanes of a subgroup are neighbours.
#ifdef SUBGROUPS
#define LANE_BUILTINS @builtin(subgroup_id) g_: u32, @builtin(subgroup_size) n_: u32, @builtin(subgroup_invocation_id) i_: u32
#define LANE g_ * n_ + i_
#else
#define LANE_BUILTINS @builtin(local_invocation_index) lane_: u32
#define LANE lane_
#endif
