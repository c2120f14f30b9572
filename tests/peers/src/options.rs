//! The command line that the peers share, and the tokens that they are given.

/// What is measured, and in which settings.
#[derive(Clone)]
pub struct Options {
    pub model: String,
    pub n_threads: i32,
    /// Tokens; 0 leaves the test out.
    pub n_prompt: usize,
    /// Tokens; 0 leaves the test out.
    pub n_generated: usize,
    pub depths: Vec<usize>,
    pub n_repetitions: usize,
    pub kv: Kv,
    /// Tokens that the context holds at least.
    pub n_context: usize,
    /// Weights rearranged at load for faster products, in memory of their own.
    pub repack: bool,
    pub map: bool,
    pub flash_attention: bool,
    /// The way to a depth is a test too: a prompt of that length.
    pub time_depth: bool,
    /// A file that keeps what the way to a depth has computed: the next run reads it instead.
    pub kept: Option<String>,
    /// The file of a vision tower: an image is measured, and nothing else.
    pub mmproj: Option<String>,
    /// Pixels: width and height.
    pub image_size: (u32, u32),
    /// A file of the same model: the divergence from its logits on `text` is measured, and nothing else.
    pub against: Option<String>,
    /// The file of a text.
    pub text: String,
    /// Only load, and answer a short prompt with one token.
    pub first_token: bool,
}

#[derive(Clone, Copy)]
pub enum Kv {
    F16,
    Q8_0,
    Q4_0,
}

impl Kv {
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Q8_0 => "q8_0",
            Self::Q4_0 => "q4_0",
        }
    }
}

const USAGE: &str = "peer-NAME --model F [--threads 2] [--prompt 512] [--gen 64] [--depth 0,4096] [--repeat 1] \
                     [--kv f16|q8_0|q4_0] [--ctx 0] [--no-repack] [--no-mmap] [--no-flash] [--time-depth] [--keep F] \
                     [--first-token] [--against F --text F] [--mmproj F [--image-size 1024x768]]";

impl Options {
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            model: String::new(),
            n_threads: 2,
            n_prompt: 512,
            n_generated: 64,
            depths: vec![0],
            n_repetitions: 1,
            kv: Kv::F16,
            n_context: 0,
            repack: true,
            map: true,
            flash_attention: true,
            time_depth: false,
            kept: None,
            mmproj: None,
            image_size: (1024, 768),
            against: None,
            text: String::new(),
            first_token: false,
        };
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{name} wants a value. {USAGE}"));
            match name.as_str() {
                "--model" => options.model = value()?,
                "--threads" => options.n_threads = number(&value()?)?,
                "--prompt" => options.n_prompt = number(&value()?)?,
                "--gen" => options.n_generated = number(&value()?)?,
                "--depth" => options.depths = value()?.split(',').map(number).collect::<Result<_, _>>()?,
                "--repeat" => options.n_repetitions = number(&value()?)?,
                "--kv" => options.kv = kv(&value()?)?,
                "--ctx" => options.n_context = number(&value()?)?,
                "--no-repack" => options.repack = false,
                "--no-mmap" => options.map = false,
                "--no-flash" => options.flash_attention = false,
                "--keep" => options.kept = Some(value()?),
                "--time-depth" => options.time_depth = true,
                "--mmproj" => options.mmproj = Some(value()?),
                "--image-size" => options.image_size = size(&value()?)?,
                "--against" => options.against = Some(value()?),
                "--text" => options.text = value()?,
                "--first-token" => options.first_token = true,
                _ => return Err(format!("{name} is no option. {USAGE}")),
            }
        }
        if options.model.is_empty() || options.n_threads < 1 || options.n_repetitions < 1 {
            return Err(format!("A model, a thread and a repetition are needed. {USAGE}"));
        }
        Ok(options)
    }

    /// Tokens of the deepest test.
    pub fn n_tokens(&self) -> usize {
        let deepest = self.depths.iter().copied().max().unwrap_or(0);
        self.n_context.max(deepest + self.n_prompt.max(self.n_generated) + 1)
    }
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("\"{text}\" is not a number. {USAGE}"))
}

fn size(text: &str) -> Result<(u32, u32), String> {
    let (width, height) =
        text.split_once('x').ok_or_else(|| format!("\"{text}\" is not a size. {USAGE}"))?;
    Ok((number(width)?, number(height)?))
}

fn kv(text: &str) -> Result<Kv, String> {
    let known = [Kv::F16, Kv::Q8_0, Kv::Q4_0];
    let found = known.into_iter().find(|kv| kv.name() == text);
    found.ok_or_else(|| format!("\"{text}\" is not a precision of the context. {USAGE}"))
}

/// `n` ids that look like nothing, from a place on: those of `nook bench`.
pub fn ids(from: usize, n: usize, n_vocab: usize) -> Vec<u32> {
    let id = |at: usize| ((at as u64 * 7919 + 17) % n_vocab as u64) as u32;
    (from..from + n).map(id).collect()
}
