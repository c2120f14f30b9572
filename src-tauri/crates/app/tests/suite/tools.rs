//! Tools of other programs: a real MCP server (`tests/mcp/server.py`), sound and faulty, and a
//! scripted model that makes the calls it is given.
#![allow(clippy::unwrap_used)] // a test

mod forms;
mod home;
mod prompts;
mod resources;
mod rounds;
mod servers;
mod temporary;
