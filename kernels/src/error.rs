//! Why a kernel gives no result: it does not know what it met, or the file is damaged.

/// The reason that there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Something that Arrow reads and these kernels do not.
    NotMine(&'static str),
    /// A value of the page with this claim is outside of what is claimed.
    Outside(usize),
    /// Bytes that contradict themselves or what is said about them.
    Corrupt(String),
    /// Values that the type they are read as cannot hold.
    OutOfRange(&'static str),
}

pub type Result<T> = std::result::Result<T, Refusal>;

/// Damage, in words that follow "is corrupt: ".
pub fn corrupt<T>(what: impl Into<String>) -> Result<T> {
    Err(Refusal::Corrupt(what.into()))
}
