// Queries and keys rotated as in `ops/rope.wgsl`; the keys are stored in the same kernel, with their values.
#define ROTATES
#import kv_write
