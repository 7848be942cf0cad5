
/// Runs alone: the selection holds for the whole process.
/// `cargo test -p vesper-jit --test programs planted -- --test-threads 1 --nocapture`
#[test]
#[allow(clippy::print_stdout, reason = "lists the faults that no program notices")]
fn planted_faults_are_noticed() {
    let programs: Vec<Program> = (0..60).map(drawn).chain(special()).collect();
    let faults = vesper_ir::fault::FAULTS.iter().map(|(name, _)| *name);
    let faults: Vec<&str> = faults.filter(|name| name.starts_with("jit.")).collect();
    let survivors: Vec<&str> = faults
        .iter()
        .copied()
        .filter(|fault| {
            assert!(vesper_ir::fault::select(Some(fault)));
            let mut all = programs.iter().zip(0..);
            !all.any(|(program, seed)| compare(program, seed, 48, 4).is_err())
        })
        .collect();
    vesper_ir::fault::select(None);
    println!(
        "{} of {} faults are noticed; not {survivors:?}",
        faults.len() - survivors.len(),
        faults.len()
    );
    assert!(survivors.len() * 10 <= faults.len(), "{survivors:?}");
}

/// Loops, records and texts.
fn special() -> Vec<Program> {
    let sum = call("integer.bit_xor", &[local(1), local(0)]);
    let tripled = call("integer.multiply", &[local(1), integer(3)]);
    let mut all = vec![rounds(sum, input("seed")), rounds(tripled, input("seed"))];
    all.extend(of_records());
    all.extend(edges());
    all
}
