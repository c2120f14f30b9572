// norm(a + norm(b)), keeping the sum: as `plan/add_norm.wgsl`, after a norm of b as in `ops/rms_norm.wgsl`.
#define BEFORE
#import add_norm
