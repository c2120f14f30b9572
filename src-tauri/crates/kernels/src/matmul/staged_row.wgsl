// A row of x in workgroup memory, for kernels in which each lane takes whole blocks. There neighbouring lanes use
// different memory banks. In the buffer each of them would read another cache line. The row comes in stages of STAGES
// blocks for each of PARTIAL_SUMS lanes.
const STAGE_BLOCKS = STAGES * PARTIAL_SUMS;
// quads of a block, and one more so that lanes use different memory banks
const STAGE_PITCH = 9u;
var<workgroup> staged: array<Quad, STAGE_BLOCKS * STAGE_PITCH>;

// Brings the blocks from `first` on, at most to `last`. Every lane of the workgroup must call it.
fn bring_stage(lane: u32, row: u32, first: u32, last: u32) {
  // the stage before has been read
  workgroupBarrier();
  for (var at = lane; at < STAGE_BLOCKS * 8u; at += LANES) {
    if (first + at / 8u <= last) {
      staged[at / 8u * STAGE_PITCH + at % 8u] = x_quad(row, first * 8u + at);
    }
  }
  workgroupBarrier();
}

// Returns four elements of a block of the stage.
fn staged_quad(block: u32, quad: u32) -> Quad {
  return staged[block * STAGE_PITCH + quad];
}
