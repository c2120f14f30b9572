//! llama.cpp with one model and one sequence: the only place that calls it.
//!
//! Its pointers are made in `load`, never null after it, and used by one thread. They are freed in reverse order. Every
//! call below relies on this.

use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::sync::Once;

use llama_cpp_sys_2 as sys;

use crate::options::{Kv, Options, ids};

/// Tokens that are handed over at once.
pub const BATCH: usize = 2048;
/// Tokens that one pass computes: llama.cpp's own default.
const MICRO_BATCH: u32 = 512;
const SEQUENCE: sys::llama_seq_id = 0;

/// Started with the first model of the process.
static BACKEND: Once = Once::new();

pub struct Runner {
    threads: *mut sys::ggml_threadpool,
    model: *mut sys::llama_model,
    context: *mut sys::llama_context,
    n_vocab: usize,
    /// Tokens that the sequence holds.
    depth: usize,
}

extern "C" fn silent(_: sys::ggml_log_level, _: *const c_char, _: *mut c_void) {}

impl Runner {
    pub fn load(options: &Options) -> Result<Self, String> {
        let path =
            CString::new(options.model.as_str()).map_err(|_| "the path holds a zero byte".to_owned())?;
        let loud = std::env::var_os("PEER_VERBOSE").is_some();
        // SAFETY: a callback without state; the backend is started once, before any model.
        BACKEND.call_once(|| unsafe {
            if !loud {
                sys::llama_log_set(Some(silent), ptr::null_mut());
                sys::mtmd_log_set(Some(silent), ptr::null_mut());
            }
            sys::llama_backend_init();
        });
        // SAFETY: the parameters are llama.cpp's own with plain fields changed; the path outlives the call.
        let model = unsafe {
            let mut params = sys::llama_model_default_params();
            params.n_gpu_layers = 0;
            params.use_extra_bufts = options.repack;
            params.load_mode =
                if options.map { sys::LLAMA_LOAD_MODE_MMAP } else { sys::LLAMA_LOAD_MODE_NONE };
            sys::llama_model_load_from_file(path.as_ptr(), params)
        };
        if model.is_null() {
            return Err(format!("llama.cpp does not load {}", options.model));
        }
        let mut runner =
            Self { threads: ptr::null_mut(), model, context: ptr::null_mut(), n_vocab: 0, depth: 0 };
        runner.start(options)?;
        Ok(runner)
    }

    /// The context, its threads and what the vocabulary holds.
    fn start(&mut self, options: &Options) -> Result<(), String> {
        let n_context = u32::try_from(options.n_tokens()).map_err(|_| "that depth is too great")?;
        // SAFETY: `self.model` is a loaded model; the parameters are llama.cpp's own with plain fields changed.
        unsafe {
            let mut params = sys::llama_context_default_params();
            params.n_ctx = n_context;
            params.n_batch = BATCH as u32;
            params.n_ubatch = MICRO_BATCH;
            params.n_threads = options.n_threads;
            params.n_threads_batch = options.n_threads;
            params.flash_attn_type = match options.flash_attention {
                true => sys::LLAMA_FLASH_ATTN_TYPE_ENABLED,
                false => sys::LLAMA_FLASH_ATTN_TYPE_DISABLED,
            };
            params.type_k = kv_type(options.kv);
            params.type_v = kv_type(options.kv);
            params.no_perf = true;
            params.swa_full = false;
            self.context = sys::llama_init_from_model(self.model, params);
        }
        if self.context.is_null() {
            return Err("llama.cpp makes no context in these settings".into());
        }
        // SAFETY: the context is there; the pool outlives it (see `drop`); without a pool llama.cpp would start threads
        // again for every pass.
        unsafe {
            let mut params = sys::ggml_threadpool_params_default(options.n_threads);
            self.threads = sys::ggml_threadpool_new(&mut params);
            if !self.threads.is_null() {
                sys::llama_attach_threadpool(self.context, self.threads, self.threads);
            }
            self.n_vocab = sys::llama_vocab_n_tokens(self.vocabulary()).max(1) as usize;
        }
        if self.threads.is_null() { Err("llama.cpp starts no threads".into()) } else { Ok(()) }
    }

    fn vocabulary(&self) -> *const sys::llama_vocab {
        // SAFETY: the model is loaded.
        unsafe { sys::llama_model_get_vocab(self.model) }
    }

    pub fn model(&self) -> *const sys::llama_model {
        self.model
    }

    pub fn context(&self) -> *mut sys::llama_context {
        self.context
    }

    /// Waits for what was handed over.
    pub fn synchronize(&self) {
        // SAFETY: the context is there.
        unsafe { sys::llama_synchronize(self.context) };
    }

    pub fn n_vocab(&self) -> usize {
        self.n_vocab
    }

    /// Appends tokens; the logits of the last are there afterwards.
    pub fn decode(&mut self, tokens: &[u32]) -> Result<(), String> {
        for part in tokens.chunks(BATCH) {
            // SAFETY: llama.cpp only reads the tokens, within the call, ids below 2³¹ being the same in its signed type; positions continue where the sequence ends.
            let status = unsafe {
                let batch = sys::llama_batch_get_one(
                    part.as_ptr().cast::<sys::llama_token>().cast_mut(),
                    part.len() as i32,
                );
                sys::llama_decode(self.context, batch)
            };
            if status != 0 {
                return Err(format!("llama.cpp fails to decode: {status}"));
            }
        }
        self.depth += tokens.len();
        self.synchronize();
        Ok(())
    }

    /// A sequence of `depth` tokens, whatever it was before.
    pub fn deepen(&mut self, depth: usize) -> Result<(), String> {
        // SAFETY: the context is there, and owns its memory.
        unsafe { sys::llama_memory_clear(sys::llama_get_memory(self.context), false) };
        self.depth = 0;
        self.decode(&ids(0, depth, self.n_vocab))
    }

    /// As `deepen`, out of a file that an earlier call left; the first leaves it.
    pub fn deepen_from(&mut self, path: &str, depth: usize) -> Result<(), String> {
        let file = CString::new(path).map_err(|_| "the path holds a zero byte".to_owned())?;
        if !std::path::Path::new(path).exists() {
            self.deepen(depth)?;
            let tokens = ids(0, depth, self.n_vocab);
            // SAFETY: the path and `n` tokens, ids below 2³¹, outlive the call, which only reads them.
            let n_bytes = unsafe {
                let tokens = tokens.as_ptr().cast::<sys::llama_token>();
                sys::llama_state_seq_save_file(self.context, file.as_ptr(), SEQUENCE, tokens, depth)
            };
            return if n_bytes == 0 { Err(format!("llama.cpp cannot write {path}")) } else { Ok(()) };
        }
        let (mut tokens, mut n_read) = (vec![0 as sys::llama_token; depth], 0);
        // SAFETY: the context owns its memory; the buffer takes that number of tokens.
        let n_bytes = unsafe {
            sys::llama_memory_clear(sys::llama_get_memory(self.context), false);
            let tokens = tokens.as_mut_ptr();
            sys::llama_state_seq_load_file(self.context, file.as_ptr(), SEQUENCE, tokens, depth, &mut n_read)
        };
        if n_bytes == 0 || n_read != depth {
            return Err(format!("{path} holds no {depth} tokens of this model: remove it"));
        }
        self.depth = depth;
        Ok(())
    }

    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Forgets what follows `depth`; false where that can't be done: the sequence is in no use then.
    pub fn truncate(&mut self, depth: usize) -> bool {
        // SAFETY: as in `deepen`.
        let done = unsafe {
            let memory = sys::llama_get_memory(self.context);
            if depth == 0 {
                sys::llama_memory_clear(memory, false);
                true
            } else {
                sys::llama_memory_seq_rm(memory, SEQUENCE, depth as i32, -1)
            }
        };
        self.depth = if done { depth } else { self.depth };
        done
    }

    /// The ids of `text`, with what the model wants around it if `add_special`. Control tokens are read as text.
    pub fn tokenize(&self, text: &str, add_special: bool) -> Result<Vec<u32>, String> {
        let mut ids = vec![0; text.len() + 8];
        // SAFETY: the lengths are those of the buffers.
        let n = unsafe {
            sys::llama_tokenize(
                self.vocabulary(),
                text.as_ptr().cast(),
                text.len() as i32,
                ids.as_mut_ptr(),
                ids.len() as i32,
                add_special,
                false,
            )
        };
        let n = usize::try_from(n).map_err(|_| "llama.cpp cannot tokenize the text")?;
        Ok(ids[..n].iter().map(|&id| id.cast_unsigned()).collect())
    }

    /// The logits of each token in a new sequence: (tokens, n_vocab).
    pub fn all_logits(&mut self, tokens: &[u32]) -> Result<Vec<f32>, String> {
        self.deepen(0)?;
        let n_tokens = i32::try_from(tokens.len()).map_err(|_| "the window is too long")?;
        // SAFETY: the batch has room for `n_tokens`, each in one sequence, and is freed once; rows that were asked for
        // have `n_vocab` logits until the next call.
        unsafe {
            let mut batch = sys::llama_batch_init(n_tokens, 0, 1);
            for (at, &id) in tokens.iter().enumerate() {
                *batch.token.add(at) = id.cast_signed();
                *batch.pos.add(at) = at as sys::llama_pos;
                *batch.n_seq_id.add(at) = 1;
                **batch.seq_id.add(at) = SEQUENCE;
                *batch.logits.add(at) = 1;
            }
            batch.n_tokens = n_tokens;
            let status = sys::llama_decode(self.context, batch);
            sys::llama_batch_free(batch);
            if status != 0 {
                return Err(format!("llama.cpp fails to decode: {status}"));
            }
            self.synchronize();
            self.depth = tokens.len();
            let logits = sys::llama_get_logits(self.context);
            if logits.is_null() {
                return Err("llama.cpp has no logits".into());
            }
            Ok(std::slice::from_raw_parts(logits, tokens.len() * self.n_vocab).to_vec())
        }
    }

    /// The likeliest token after `text`, and its bytes.
    pub fn first_token(&mut self, text: &str) -> Result<(sys::llama_token, Vec<u8>), String> {
        let ids = self.tokenize(text, true)?;
        self.decode(&ids)?;
        // SAFETY: logits of the last token were asked for: (n_vocab).
        let logits = unsafe {
            let logits = sys::llama_get_logits_ith(self.context, -1);
            if logits.is_null() {
                return Err("llama.cpp has no logits".into());
            }
            std::slice::from_raw_parts(logits, self.n_vocab)
        };
        let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        let id = best.map_or(0, |(id, _)| id as sys::llama_token);
        let mut piece = vec![0_u8; 256];
        // SAFETY: the length is that of the buffer.
        let n = unsafe {
            sys::llama_token_to_piece(
                self.vocabulary(),
                id,
                piece.as_mut_ptr().cast(),
                piece.len() as i32,
                0,
                true,
            )
        };
        piece.truncate(usize::try_from(n).unwrap_or(0));
        Ok((id, piece))
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // SAFETY: each is freed once, what uses another before it; llama.cpp takes null for nothing.
        unsafe {
            if !self.context.is_null() {
                sys::llama_free(self.context);
            }
            if !self.threads.is_null() {
                sys::ggml_threadpool_free(self.threads);
            }
            sys::llama_model_free(self.model);
        }
    }
}

fn kv_type(kv: Kv) -> sys::ggml_type {
    match kv {
        Kv::F16 => sys::GGML_TYPE_F16,
        Kv::Q8_0 => sys::GGML_TYPE_Q8_0,
        Kv::Q4_0 => sys::GGML_TYPE_Q4_0,
    }
}
