//! Tools of other programs: a real server of the Model Context Protocol (`tests/mcp/server.py`), sound and faulty, and a
//! model that is played by a few lines and calls what it is told to.
#![allow(clippy::unwrap_used)] // a test

#[allow(dead_code)] // shared with the tests of other servers
#[path = "../remote/fake.rs"]
mod fake;
mod home;
mod prompts;
mod resources;
mod rounds;
mod servers;
mod temporary;
