// norm(a + norm(b)), with the sum kept: as `plan/fuse.wgsl`, after the norm of one of them as `ops/rms_norm.wgsl` has it.
#define BEFORE
#import add_norm
