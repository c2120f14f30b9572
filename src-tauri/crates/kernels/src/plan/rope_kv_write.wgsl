// Queries and keys rotated as in `ops/rope.wgsl`, and the keys stored at once with their values.
#define ROTATES
#import kv_write
