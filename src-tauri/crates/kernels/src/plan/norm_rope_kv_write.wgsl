// Queries and keys normed head by head as in `ops/rms_norm.wgsl`, then rotated and stored as in `plan/rope_kv_write.wgsl`.
#define ROTATES
#define NORMED
#import kv_write
