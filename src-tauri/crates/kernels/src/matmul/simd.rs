//! A register seen as lanes of 32 bits, one lane for each weight row: what the quantised products are written in,
//! once for AVX2 and NEON (8 rows) and once for AVX-512 (16 rows). Everything a kernel does to integers is exact, so that
//! only the order of its float additions decides its result, and that order is the same for any number of rows and
//! tokens.

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
#[cfg(target_arch = "x86_64")]
mod columns;
#[cfg(target_arch = "aarch64")]
pub mod neon;

/// Most lanes of any register.
pub const MAX_ROWS: usize = 16;

/// Bytes before the same block in each of `Simd::ROWS` weight rows.
pub type RowPointers = [*const u8; MAX_ROWS];

/// ColumnGroups of eight columns of two panels that follow each other.
#[derive(Clone, Copy)]
#[cfg_attr(target_arch = "aarch64", allow(dead_code))] // read at AVX2 only
pub struct ColumnGroups {
    /// as `Simd::dot_columns` takes them
    pub w: [*const i32; 2],
    pub q: *const i32,
    /// for each half of a group a `Simd::multiplier`, `MAX_ROWS` numbers apart
    pub scales: [*const i32; 2],
    /// for each half of a group what is added to the sums of its tokens, `PACK_TOKENS` numbers apart
    pub less: *const i32,
}

/// Which of `ColumnGroups::scales` the columns of a group are multiplied with.
#[derive(Clone, Copy)]
pub enum GroupScales {
    /// The first.
    PerGroup,
    /// The first, where only four columns at a time have room in short sums.
    PerGroupInHalves,
    /// Each half with its own.
    PerHalf,
    /// Each half with its own, `ColumnGroups::less` added before.
    PerHalfBiased,
}

/// Simd of one instruction set.
///
/// # Safety
/// All functions: the processor has the instruction set, and the caller is compiled for it (else each call is one).
/// Functions with pointers: as many bytes as their names say can be read or written there, at any alignment.
///
/// Loops call them, not closures that `map` or `from_fn` take: those may be compiled without the instruction set
/// (`tests/inlined.rs`).
pub trait Simd {
    /// Simd in a register.
    const ROWS: usize;
    /// Registers' worth of rows that it multiplies with each activation that it has loaded: one or two.
    const PANELS: usize;
    /// Whether products of bytes are added up as i16 first, as no instruction adds four of them to 32 bits.
    const I16_SUMS: bool;
    /// Whether transposed weights are matrices of two rows by eight bytes, which `smmla` multiplies with two tokens at
    /// once, and not columns for `dot`.
    const HAS_SMMLA: bool = false;
    /// What `bias_signed` adds to each weight byte; a dot product is too large by this times the sum of the activations.
    const SIGNED_BIAS: i32;
    type I: Copy;
    type F: Copy;

    unsafe fn zero() -> Self::I;
    unsafe fn zero_f() -> Self::F;
    /// One number in all lanes.
    unsafe fn splat(v: i32) -> Self::I;
    unsafe fn splat_f(v: f32) -> Self::F;
    unsafe fn load(from: *const i32) -> Self::I;
    unsafe fn store(to: *mut i32, v: Self::I);
    unsafe fn load_f(from: *const f32) -> Self::F;
    unsafe fn store_f(to: *mut f32, v: Self::F);
    unsafe fn add(a: Self::I, b: Self::I) -> Self::I;
    unsafe fn sub(a: Self::I, b: Self::I) -> Self::I;
    /// Low 32 bits of the products.
    unsafe fn mul(a: Self::I, b: Self::I) -> Self::I;
    unsafe fn and(a: Self::I, b: Self::I) -> Self::I;
    unsafe fn or(a: Self::I, b: Self::I) -> Self::I;
    unsafe fn shift_left<const N: u32>(a: Self::I) -> Self::I;
    /// Fills with zeros.
    unsafe fn shift_right<const N: u32>(a: Self::I) -> Self::I;
    /// Fills with the sign.
    unsafe fn shift_right_signed<const N: u32>(a: Self::I) -> Self::I;
    unsafe fn to_f(a: Self::I) -> Self::F;
    unsafe fn mul_f(a: Self::F, b: Self::F) -> Self::F;
    /// a · b + c, rounded once.
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// The f16 in the low (high) half of each lane.
    unsafe fn f16_low(a: Self::I) -> Self::F;
    unsafe fn f16_high(a: Self::I) -> Self::F;
    /// The f16 before which each row's pointer plus `offset` stands.
    unsafe fn load_f16(rows: &RowPointers, offset: usize) -> Self::F;
    /// The byte before which each row's pointer plus `offset` stands.
    unsafe fn load_bytes(rows: &RowPointers, offset: usize) -> Self::I;
    /// Each lane as the float that has its bits.
    unsafe fn bitcast_f(a: Self::I) -> Self::F;
    /// Sixteen bytes, as often as they fit: what `lookup` takes.
    unsafe fn load_table(codes: &[i8; 16]) -> Self::I;
    /// For each byte the one of the table with that index, within 0..=15.
    unsafe fn lookup(table: Self::I, indices: Self::I) -> Self::I;

    /// Asks for the cache line at an address, which need not be readable, into the second-level cache.
    unsafe fn prefetch(at: *const u8);

    /// acc + the dot product of the four bytes in each lane: `w` within 0..=127, `a` within -127..=127.
    unsafe fn dot(acc: Self::I, w: Self::I, a: Self::I) -> Self::I;
    /// Signed bytes made fit for `dot_signed`.
    unsafe fn bias_signed(w: Self::I) -> Self::I;
    /// As `dot` for any weight bytes that went through `bias_signed`.
    unsafe fn dot_signed(acc: Self::I, w: Self::I, a: Self::I) -> Self::I;
    /// acc + the same dot product, which `widen` ends: where `I16_SUMS`, in two parts of 16 bits that have room for
    /// `i16_run_len` of them.
    #[inline(always)]
    unsafe fn dot_i16(acc: Self::I, w: Self::I, a: Self::I) -> Self::I {
        // SAFETY: the caller's.
        unsafe { Self::dot(acc, w, a) }
    }
    /// As `dot_i16` of `dot_signed`.
    #[inline(always)]
    unsafe fn dot_i16_signed(acc: Self::I, w: Self::I, a: Self::I) -> Self::I {
        // SAFETY: the caller's.
        unsafe { Self::dot_signed(acc, w, a) }
    }
    /// acc + what `dot_i16` came to.
    #[inline(always)]
    unsafe fn widen(acc: Self::I, short: Self::I) -> Self::I {
        // SAFETY: the caller's.
        unsafe { Self::add(acc, short) }
    }
    /// Where `I16_SUMS`, the `dot_i16` of four tokens with four or eight columns of two panels, all added: columns
    /// lie `MAX_ROWS` numbers apart, and those bytes of a token that they are multiplied with `PACK_TOKENS` apart.
    #[inline(always)]
    unsafe fn dot_columns<const N: usize>(_w: [*const i32; 2], _q: *const i32) -> [[Self::I; 4]; 2] {
        unreachable!("no short sums")
    }
    /// The `dot_columns` of `n` groups of eight, at least one, times scales, all added.
    #[inline(always)]
    unsafe fn dot_groups(_how: GroupScales, _n: usize, _from: ColumnGroups) -> [[Self::I; 4]; 2] {
        unreachable!("no short sums")
    }
    /// As `dot_columns` of eight as `store_signed` wrote them, to 32 bits; each lacks what that returned.
    #[inline(always)]
    unsafe fn dot_signed_columns(_w: [*const i32; 2], _q: *const i32) -> [[Self::I; 4]; 2] {
        unreachable!("no short sums")
    }
    /// Where `I16_SUMS`, writes a column of signed bytes for `dot_signed_columns`, `MAX_ROWS` numbers, and returns what
    /// sums will lack of it.
    #[inline(always)]
    unsafe fn store_signed(_to: *mut i32, _w: Self::I) -> Self::I {
        unreachable!("no short sums")
    }
    /// The column that `store_signed` wrote.
    #[inline(always)]
    unsafe fn load_signed(_from: *const i32) -> Self::I {
        unreachable!("no short sums")
    }
    /// Where `I16_SUMS`, the sums of both i16 in each lane, of which the low 16 bits.
    #[inline(always)]
    unsafe fn add_i16(_a: Self::I, _b: Self::I) -> Self::I {
        unreachable!("no short sums")
    }
    /// As `add_i16`, the products of both with one number.
    #[inline(always)]
    unsafe fn mul_i16(_a: Self::I, _by: i16) -> Self::I {
        unreachable!("no short sums")
    }
    /// A scale within i16 made fit for `widen_scaled`.
    #[inline(always)]
    unsafe fn multiplier(scale: Self::I) -> Self::I {
        scale
    }
    /// acc + what `dot_i16` came to times a `multiplier`.
    #[inline(always)]
    unsafe fn widen_scaled(acc: Self::I, short: Self::I, multiplier: Self::I) -> Self::I {
        // SAFETY: the caller's.
        unsafe { Self::add(acc, Self::mul(short, multiplier)) }
    }
    /// Writes the scale of each row, within i16, as sums of products are multiplied with it: a `multiplier`, or, where
    /// `HAS_SMMLA`, four to each two rows, for sums in the order of `smmla`.
    #[inline(always)]
    unsafe fn store_scale(to: *mut i32, scale: Self::I) {
        // SAFETY: the caller's.
        unsafe { Self::store(to, Self::multiplier(scale)) }
    }
    /// Where `HAS_SMMLA`, acc + four rows times two tokens: eight bytes of each row, one after the other in `w`, and of
    /// each token in each half of `a`. Lane 2r + t is row r times token t.
    #[inline(always)]
    unsafe fn smmla(_acc: Self::I, _w: Self::I, _a: Self::I) -> Self::I {
        unreachable!("no matrices")
    }
    /// Two numbers, as often as they fit: for each token one, in the order of `smmla`.
    #[inline(always)]
    unsafe fn splat_pair(_from: *const i32) -> Self::I {
        unreachable!("no matrices")
    }
    /// From `smmla` of the first and of the second half of the rows: a lane for each row, of the first and of the
    /// second token.
    #[inline(always)]
    unsafe fn split_tokens(_first: Self::I, _second: Self::I) -> [Self::I; 2] {
        unreachable!("no matrices")
    }
    /// acc + the dot product of the two i16 in each lane.
    unsafe fn dot_pairs(acc: Self::I, w: Self::I, a: Self::I) -> Self::I;

    /// 32 bytes of activations, as often as they fit: what `load_rows32` registers are multiplied with.
    unsafe fn broadcast32(from: *const u8) -> Self::I;
    /// 32 bytes of each row: register i holds rows i and, where there is room, i + 8.
    unsafe fn load_rows32(rows: &RowPointers, offset: usize) -> [Self::I; 8];
    /// 16 bytes of each row as 32 nibbles, in the arrangement of `load_rows32`: low nibbles first.
    unsafe fn nibbles32(rows: &RowPointers, offset: usize) -> [Self::I; 8];
    /// 32 bits of each row as bytes of all ones or zeros, in the arrangement of `load_rows32`: low bits first.
    unsafe fn bits32(rows: &RowPointers, offset: usize) -> [Self::I; 8];
    /// The dot product of 16 bytes of each row as 32 nibbles, low ones first, with the 32 activations at `a`.
    unsafe fn dot_nibbles(rows: &RowPointers, offset: usize, a: *const u8) -> Self::I;
    /// As `dot_nibbles`, with what `table` says in place of each nibble: at most 32.
    unsafe fn dot_codes(rows: &RowPointers, offset: usize, a: *const u8, table: Self::I) -> Self::I;
    /// 16 bytes of each row: register j, lane r is bytes 4j..4j+4 of row r.
    unsafe fn columns16(rows: &RowPointers, offset: usize) -> [Self::I; 4];
    /// From the arrangement of `load_rows32`: register j, lane r is bytes 4j..4j+4 of row r. Where `HAS_SMMLA`, register 2i is
    /// bytes 8i..8i+8 of the first half of the rows, row after row, and register 2i + 1 those of the second.
    unsafe fn transpose(rows: [Self::I; 8]) -> [Self::I; 8];
    /// From the arrangement of `load_rows32`: lane r is the sum of the first (second) four lanes of row r.
    unsafe fn reduce(rows: [Self::I; 8]) -> (Self::I, Self::I);
}

/// How many dot products of weight bytes up to `largest` in magnitude are added before `Simd::widen`: a power of two
/// up to `most`, itself one.
pub const fn i16_run_len<L: Simd>(largest: i32, most: usize) -> usize {
    let room = if L::I16_SUMS { i16::MAX as usize / (2 * 127 * largest as usize) } else { most };
    let mut run = most;
    while run > room {
        run /= 2;
    }
    run
}

/// Gives every function the attributes and the safety argument that all of them share.
macro_rules! instructions {
    ($($(#[$attribute:meta])* $visible:vis fn $name:ident $(<const $n:ident: $n_type:ty>)? ($($a:ident: $t:ty),*) -> $r:ty $body:block)*) => {
        $(
            $(#[$attribute])*
            // SAFETY: prefetch_bytes of the caller by the trait.
            #[inline(always)]
            #[allow(unused_unsafe)] // some only pass their argument on
            $visible unsafe fn $name $(<const $n: $n_type>)? ($($a: $t),*) -> $r {
                // SAFETY: the trait asks the caller for the instruction set and for readable, writable pointers.
                unsafe { $body }
            }
        )*
    };
}
pub(crate) use instructions;
