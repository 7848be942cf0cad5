//! Writes the messages of `schemas/proto` as Rust, and their descriptors for reflection.
//!
//! `vesper-protos PROTOS OUT` reads every `.proto` below PROTOS and writes `*.rs` and `descriptors.binpb` into OUT.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let (Some(protos), Some(out)) = (arguments.next(), arguments.next()) else {
        return Err("usage: vesper-protos PROTOS OUT".into());
    };
    let mut files = Vec::new();
    find_protos(&protos, &mut files)?;
    files.sort();

    let mut compiler = protox::Compiler::new([&protos])?;
    compiler
        .include_imports(true)
        .include_source_info(true)
        .open_files(&files)?;
    let with_comments = compiler.file_descriptor_set();
    let mut config = prost_build::Config::new();
    config.out_dir(&out).btree_map(["."]);
    config.compile_fds(with_comments.clone())?;

    let mut descriptors = with_comments;
    for file in &mut descriptors.file {
        file.source_code_info = None;
    }
    fs::write(out.join("descriptors.binpb"), descriptors.encode_to_vec())?;
    Ok(())
}

fn find_protos(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find_protos(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            found.push(path);
        }
    }
    Ok(())
}
