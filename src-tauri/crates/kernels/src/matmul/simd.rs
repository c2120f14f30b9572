//! A register of 32-bit lanes, one lane per weight row: the vocabulary of the quantized products.
//! Implemented for AVX2 and NEON (8 rows) and AVX-512 (16 rows).
//! Guarantees: integer arithmetic is exact. Only the order of float additions decides a result, and it does
//! not depend on the number of rows and tokens.

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

/// Pointers to the same block in each of `Simd::ROWS` weight rows.
pub type RowPointers = [*const u8; MAX_ROWS];

/// Consecutive groups of eight columns of two panels, with their scales.
#[derive(Clone, Copy)]
#[cfg_attr(target_arch = "aarch64", allow(dead_code))] // read by AVX2 only
pub struct ColumnGroups {
    /// Columns, as `Simd::dot_columns` takes them.
    pub w: [*const i32; 2],
    /// Activations, as `Simd::dot_columns` takes them.
    pub q: *const i32,
    /// A `Simd::multiplier` for each half of a group, `MAX_ROWS` numbers apart.
    pub scales: [*const i32; 2],
    /// What is added to the i16 sums of the tokens for each half of a group, `PACK_TOKENS` numbers apart.
    pub bias: *const i32,
}

/// Which of `ColumnGroups::scales` apply to the columns of a group.
#[derive(Clone, Copy)]
pub enum GroupScales {
    /// The first scale applies to the whole group.
    Group,
    /// The first scale applies to the whole group; i16 sums hold only four columns at a time.
    GroupInHalves,
    /// Each half has its own scale.
    Halves,
    /// Each half has its own scale; `ColumnGroups::bias` is added first.
    BiasedHalves,
}

/// Operations on the lanes of one instruction set.
///
/// # Safety
/// All functions: the processor has the instruction set, and the caller is compiled for it (otherwise each
/// call is a real call).
/// Functions with pointers: as many bytes as the names say can be read or written there, at any alignment.
///
/// Call them from loops, not from closures passed to `map` or `from_fn`. Such closures may be compiled
/// without the instruction set (see `tests/inlined.rs`).
pub trait Simd {
    /// Lanes in a register.
    const ROWS: usize;
    /// Panels of rows that are multiplied with each loaded activation: one or two.
    const PANELS: usize;
    /// Byte products are summed as i16 first, as no instruction sums four of them to 32 bits.
    const I16_SUMS: bool;
    /// Transposed weights are matrices of two rows × eight bytes for `smmla`, not columns for `dot`.
    const HAS_SMMLA: bool = false;
    /// What `bias_signed` adds to each weight byte. A dot product exceeds the true one by this times the
    /// activation sum.
    const SIGNED_BIAS: i32;
    /// Integer lanes.
    type I: Copy;
    /// Float lanes.
    type F: Copy;

    /// Returns zeros.
    unsafe fn zero() -> Self::I;
    /// Returns zeros.
    unsafe fn zero_f() -> Self::F;
    /// Returns `v` in all lanes.
    unsafe fn splat(v: i32) -> Self::I;
    /// Returns `v` in all lanes.
    unsafe fn splat_f(v: f32) -> Self::F;
    /// Loads a register.
    unsafe fn load(from: *const i32) -> Self::I;
    /// Stores a register.
    unsafe fn store(to: *mut i32, v: Self::I);
    /// Loads a register of floats.
    unsafe fn load_f(from: *const f32) -> Self::F;
    /// Stores a register of floats.
    unsafe fn store_f(to: *mut f32, v: Self::F);
    /// Returns a + b, wrapping.
    unsafe fn add(a: Self::I, b: Self::I) -> Self::I;
    /// Returns a − b, wrapping.
    unsafe fn sub(a: Self::I, b: Self::I) -> Self::I;
    /// Returns the low 32 bits of the products.
    unsafe fn mul(a: Self::I, b: Self::I) -> Self::I;
    /// Returns a & b.
    unsafe fn and(a: Self::I, b: Self::I) -> Self::I;
    /// Returns a | b.
    unsafe fn or(a: Self::I, b: Self::I) -> Self::I;
    /// Shifts left.
    unsafe fn shift_left<const N: u32>(a: Self::I) -> Self::I;
    /// Shifts in zeros.
    unsafe fn shift_right<const N: u32>(a: Self::I) -> Self::I;
    /// Shifts in the sign.
    unsafe fn shift_right_signed<const N: u32>(a: Self::I) -> Self::I;
    /// Converts integers to floats.
    unsafe fn to_f(a: Self::I) -> Self::F;
    /// Returns a · b.
    unsafe fn mul_f(a: Self::F, b: Self::F) -> Self::F;
    /// Returns a · b + c, rounded once.
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// Converts the f16 in the low half of each lane.
    unsafe fn f16_low(a: Self::I) -> Self::F;
    /// Converts the f16 in the high half of each lane.
    unsafe fn f16_high(a: Self::I) -> Self::F;
    /// Loads the f16 at `offset` of each row.
    unsafe fn load_f16(rows: &RowPointers, offset: usize) -> Self::F;
    /// Loads the byte at `offset` of each row.
    unsafe fn load_bytes(rows: &RowPointers, offset: usize) -> Self::I;
    /// Reinterprets the bits of each lane as a float.
    unsafe fn bitcast_f(a: Self::I) -> Self::F;
    /// Repeats sixteen bytes over the register, for `lookup`.
    unsafe fn load_table(codes: &[i8; 16]) -> Self::I;
    /// Replaces each byte by the table entry with that index, within 0..=15.
    unsafe fn lookup(table: Self::I, indices: Self::I) -> Self::I;

    /// Prefetches the cache line at `at` into the L2 cache. The address need not be readable.
    unsafe fn prefetch(at: *const u8);

    /// Returns acc + the dot product of the four bytes in each lane: `w` within 0..=127, `a` within
    /// -127..=127.
    unsafe fn dot(acc: Self::I, w: Self::I, a: Self::I) -> Self::I;
    /// Prepares signed bytes for `dot_signed`.
    unsafe fn bias_signed(w: Self::I) -> Self::I;
    /// Like `dot` for any weight bytes that went through `bias_signed`.
    unsafe fn dot_signed(acc: Self::I, w: Self::I, a: Self::I) -> Self::I;
    /// Returns acc + the same dot product, to be finished by `widen`. With `I16_SUMS`, keeps two 16-bit
    /// partial sums per lane, which hold `i16_run_len` products.
    #[inline(always)]
    unsafe fn dot_i16(acc: Self::I, w: Self::I, a: Self::I) -> Self::I {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::dot(acc, w, a) }
    }
    /// Like `dot_i16` for `dot_signed`.
    #[inline(always)]
    unsafe fn dot_i16_signed(acc: Self::I, w: Self::I, a: Self::I) -> Self::I {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::dot_signed(acc, w, a) }
    }
    /// Returns acc + the result of `dot_i16`.
    #[inline(always)]
    unsafe fn widen(acc: Self::I, short: Self::I) -> Self::I {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::add(acc, short) }
    }
    /// Sums `dot_i16` over four or eight columns of two panels, for four tokens. Only with `I16_SUMS`.
    /// Columns are `MAX_ROWS` numbers apart, the matching bytes of a token `PACK_TOKENS` apart.
    #[inline(always)]
    unsafe fn dot_columns<const N: usize>(_w: [*const i32; 2], _q: *const i32) -> [[Self::I; 4]; 2] {
        unreachable!("only with I16_SUMS")
    }
    /// Sums the scaled `dot_columns` of `n` groups (at least one) of eight columns.
    #[inline(always)]
    unsafe fn dot_groups(_how: GroupScales, _n: usize, _from: ColumnGroups) -> [[Self::I; 4]; 2] {
        unreachable!("only with I16_SUMS")
    }
    /// Like `dot_columns` for eight columns written by `store_signed`, with 32-bit sums. Each sum is short of
    /// what `store_signed` returned.
    #[inline(always)]
    unsafe fn dot_signed_columns(_w: [*const i32; 2], _q: *const i32) -> [[Self::I; 4]; 2] {
        unreachable!("only with I16_SUMS")
    }
    /// Writes a column of signed bytes for `dot_signed_columns`, `MAX_ROWS` numbers. Returns what its sums
    /// will be short of. Only with `I16_SUMS`.
    #[inline(always)]
    unsafe fn store_signed(_to: *mut i32, _w: Self::I) -> Self::I {
        unreachable!("only with I16_SUMS")
    }
    /// Loads the column that `store_signed` wrote.
    #[inline(always)]
    unsafe fn load_signed(_from: *const i32) -> Self::I {
        unreachable!("only with I16_SUMS")
    }
    /// Adds both i16 in each lane, wrapping. Only with `I16_SUMS`.
    #[inline(always)]
    unsafe fn add_i16(_a: Self::I, _b: Self::I) -> Self::I {
        unreachable!("only with I16_SUMS")
    }
    /// Multiplies both i16 in each lane by `by`, wrapping. Only with `I16_SUMS`.
    #[inline(always)]
    unsafe fn mul_i16(_a: Self::I, _by: i16) -> Self::I {
        unreachable!("only with I16_SUMS")
    }
    /// Prepares a scale within i16 for `widen_scaled`.
    #[inline(always)]
    unsafe fn multiplier(scale: Self::I) -> Self::I {
        scale
    }
    /// Returns acc + the result of `dot_i16` times a `multiplier`.
    #[inline(always)]
    unsafe fn widen_scaled(acc: Self::I, short: Self::I, multiplier: Self::I) -> Self::I {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::add(acc, Self::mul(short, multiplier)) }
    }
    /// Writes the scale of each row, within i16, as it will multiply sums: as a `multiplier`.
    /// With `HAS_SMMLA`, four scales for every two rows, in the order of `smmla`.
    #[inline(always)]
    unsafe fn store_scale(to: *mut i32, scale: Self::I) {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::store(to, Self::multiplier(scale)) }
    }
    /// Returns acc + four rows times two tokens. Only with `HAS_SMMLA`.
    /// `w`: eight bytes of each row. `a`: eight bytes of each token in each half. Lane 2r + t is row r times
    /// token t.
    #[inline(always)]
    unsafe fn smmla(_acc: Self::I, _w: Self::I, _a: Self::I) -> Self::I {
        unreachable!("only with HAS_SMMLA")
    }
    /// Repeats two numbers over the register, one for each token in the order of `smmla`.
    #[inline(always)]
    unsafe fn splat_pair(_from: *const i32) -> Self::I {
        unreachable!("only with HAS_SMMLA")
    }
    /// Splits two `smmla` results, of the first and second half of the rows, by token: one lane per row each.
    #[inline(always)]
    unsafe fn split_tokens(_first: Self::I, _second: Self::I) -> [Self::I; 2] {
        unreachable!("only with HAS_SMMLA")
    }
    /// Returns acc + the dot product of the two i16 in each lane.
    unsafe fn dot_pairs(acc: Self::I, w: Self::I, a: Self::I) -> Self::I;

    /// Repeats 32 bytes of activations over the register, to be multiplied with `load_rows32` registers.
    unsafe fn broadcast32(from: *const u8) -> Self::I;
    /// Loads 32 bytes of each row: register i holds row i and, if it is wide enough, row i + 8.
    unsafe fn load_rows32(rows: &RowPointers, offset: usize) -> [Self::I; 8];
    /// Unpacks 16 bytes of each row to 32 nibbles in the layout of `load_rows32`: low nibbles first.
    unsafe fn nibbles32(rows: &RowPointers, offset: usize) -> [Self::I; 8];
    /// Expands 32 bits of each row to bytes of all ones or zeros in the layout of `load_rows32`: low bits
    /// first.
    unsafe fn bits32(rows: &RowPointers, offset: usize) -> [Self::I; 8];
    /// Returns the dot product of 32 nibbles of each row, low ones first, with the 32 activations at `a`.
    unsafe fn dot_nibbles(rows: &RowPointers, offset: usize, a: *const u8) -> Self::I;
    /// Like `dot_nibbles` with each nibble replaced by its `table` entry, at most 32.
    unsafe fn dot_codes(rows: &RowPointers, offset: usize, a: *const u8, table: Self::I) -> Self::I;
    /// Loads 16 bytes of each row: register j, lane r is bytes 4j..4j+4 of row r.
    unsafe fn columns16(rows: &RowPointers, offset: usize) -> [Self::I; 4];
    /// Transposes the layout of `load_rows32`: register j, lane r is bytes 4j..4j+4 of row r.
    /// With `HAS_SMMLA`, register 2i is bytes 8i..8i+8 of the first half of the rows, row by row, and
    /// register 2i + 1 of the second half.
    unsafe fn transpose(rows: [Self::I; 8]) -> [Self::I; 8];
    /// Reduces the layout of `load_rows32`: lane r is the sum of the first four lanes of row r, then of its
    /// second four.
    unsafe fn reduce(rows: [Self::I; 8]) -> (Self::I, Self::I);
}

/// Returns how many dot products of weight bytes up to `largest` in magnitude fit before `Simd::widen`: a
/// power of two up to `most`, which is one too.
pub const fn i16_run_len<L: Simd>(largest: i32, most: usize) -> usize {
    let fitting = if L::I16_SUMS { i16::MAX as usize / (2 * 127 * largest as usize) } else { most };
    let mut run = most;
    while run > fitting {
        run /= 2;
    }
    run
}

/// Gives every function the attributes and the safety argument common to all of them.
macro_rules! instructions {
    ($($(#[$attribute:meta])* $visible:vis fn $name:ident $(<const $n:ident: $n_type:ty>)? ($($a:ident: $t:ty),*) -> $r:ty $body:block)*) => {
        $(
            $(#[$attribute])*
            // SAFETY: the trait states the requirements for the caller.
            #[inline(always)]
            #[allow(unused_unsafe)] // some only return their argument
            $visible unsafe fn $name $(<const $n: $n_type>)? ($($a: $t),*) -> $r {
                // SAFETY: the trait requires the instruction set, and readable and writable pointers.
                unsafe { $body }
            }
        )*
    };
}
pub(crate) use instructions;
