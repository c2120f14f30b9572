//! An image by llama.cpp's mtmd: seconds of its tower, of reading its tokens, and of reading as many tokens of text.
//!
//! The only place that calls mtmd. What `load` makes is never null after it, used by one thread and freed once.

use std::ffi::CString;
use std::ptr;
use std::time::Instant;

use llama_cpp_sys_2 as sys;

use crate::options::Options;
use crate::runner::{BATCH, Runner};

/// Seconds of one repetition.
pub struct ImageTimes {
    pub n_tokens: usize,
    /// Preprocessing and the tower.
    pub tower_s: f64,
    pub image_prefill_s: f64,
    pub text_prefill_s: f64,
}

/// A vision tower with the picture that it looks at.
pub struct Tower {
    context: *mut sys::mtmd_context,
    picture: *mut sys::mtmd_bitmap,
}

impl Tower {
    pub fn load(options: &Options, runner: &Runner) -> Result<Self, String> {
        let file = options.mmproj.as_deref().unwrap_or_default();
        let path = CString::new(file).map_err(|_| "the path holds a zero byte".to_owned())?;
        // SAFETY: the parameters are mtmd's own with plain fields changed; the path outlives the call, the model the tower.
        let context = unsafe {
            let mut params = sys::mtmd_context_params_default();
            params.use_gpu = false;
            params.print_timings = false;
            params.n_threads = options.n_threads;
            params.flash_attn_type = match options.flash_attention {
                true => sys::LLAMA_FLASH_ATTN_TYPE_ENABLED,
                false => sys::LLAMA_FLASH_ATTN_TYPE_DISABLED,
            };
            sys::mtmd_init_from_file(path.as_ptr(), runner.model(), params)
        };
        if context.is_null() {
            return Err(format!("mtmd does not load {file}"));
        }
        let mut tower = Self { context, picture: ptr::null_mut() };
        let (width, height) = options.image_size;
        let pixels = pixels(width, height);
        // SAFETY: three bytes for each pixel, which mtmd copies.
        tower.picture = unsafe { sys::mtmd_bitmap_init(width, height, pixels.as_ptr()) };
        if tower.picture.is_null() { Err("mtmd makes no picture".into()) } else { Ok(tower) }
    }

    /// Looks at the picture, and reads it and as much text into sequences of their own.
    pub fn measure(&mut self, runner: &mut Runner) -> Result<ImageTimes, String> {
        let start = Instant::now();
        let chunks = Chunks::of_picture(self)?;
        let chunk = chunks.image()?;
        // SAFETY: the chunk lives as long as `chunks`; the embeddings until the next call of the tower.
        let (status, rows, n_tokens) = unsafe {
            let status = sys::mtmd_encode_chunk(self.context, chunk);
            let rows = sys::mtmd_get_output_embd(self.context);
            (status, rows, sys::mtmd_input_chunk_get_n_tokens(chunk))
        };
        if status != 0 || rows.is_null() {
            return Err(format!("mtmd fails to see the picture: {status}"));
        }
        let tower_s = start.elapsed().as_secs_f64();
        runner.deepen(0)?;
        let start = Instant::now();
        let mut n_past = 0;
        // SAFETY: as above; the rows are those of the chunk, and no callback is given.
        let status = unsafe {
            sys::mtmd_helper_decode_image_chunk(
                self.context,
                runner.context(),
                chunk,
                rows,
                0,
                0,
                BATCH as i32,
                &mut n_past,
                None,
                ptr::null_mut(),
            )
        };
        if status != 0 {
            return Err(format!("llama.cpp fails to read the picture: {status}"));
        }
        runner.synchronize();
        let image_prefill_s = start.elapsed().as_secs_f64();
        let start = Instant::now();
        runner.deepen(n_tokens)?;
        Ok(ImageTimes { n_tokens, tower_s, image_prefill_s, text_prefill_s: start.elapsed().as_secs_f64() })
    }
}

impl Drop for Tower {
    fn drop(&mut self) {
        // SAFETY: each is freed once; mtmd takes null for nothing.
        unsafe {
            sys::mtmd_bitmap_free(self.picture);
            sys::mtmd_free(self.context);
        }
    }
}

/// A prompt of one picture, prepared for the tower.
struct Chunks(*mut sys::mtmd_input_chunks);

impl Chunks {
    fn of_picture(tower: &Tower) -> Result<Self, String> {
        // SAFETY: the marker is mtmd's own constant text; picture and context are there; the chunks are owned here.
        unsafe {
            let chunks = Self(sys::mtmd_input_chunks_init());
            let marker = std::ffi::CStr::from_ptr(sys::mtmd_default_marker());
            let text = sys::mtmd_input_text {
                text: marker.as_ptr(),
                text_len: marker.count_bytes(),
                add_special: false,
                parse_special: true,
            };
            let pictures = [tower.picture.cast_const()];
            match sys::mtmd_tokenize(tower.context, chunks.0, &text, pictures.as_ptr(), 1) {
                0 => Ok(chunks),
                status => Err(format!("mtmd does not prepare the picture: {status}")),
            }
        }
    }

    /// The chunk of the picture. Texts around it are those of the model's format.
    fn image(&self) -> Result<*const sys::mtmd_input_chunk, String> {
        // SAFETY: indexes are below the number of chunks.
        let found = unsafe {
            (0..sys::mtmd_input_chunks_size(self.0))
                .map(|at| sys::mtmd_input_chunks_get(self.0, at))
                .find(|&chunk| sys::mtmd_input_chunk_get_type(chunk) == sys::MTMD_INPUT_CHUNK_TYPE_IMAGE)
        };
        found.ok_or_else(|| "mtmd prepares no picture".into())
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        // SAFETY: made by `mtmd_input_chunks_init`, freed once.
        unsafe { sys::mtmd_input_chunks_free(self.0) }
    }
}

/// The picture of `nook bench --test image`.
fn pixels(width: u32, height: u32) -> Vec<u8> {
    let pixel = |x: u32, y: u32| [(x / 4) as u8, (y / 4) as u8, ((x + y) / 8) as u8];
    (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y))).collect()
}
