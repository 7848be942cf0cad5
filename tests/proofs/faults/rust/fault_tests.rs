
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_selected_fault_is_wrong() {
        // One test: the selection holds for the whole process.
        let answer = || planted!("integer.add_wraps", "right", "wrong");
        assert_eq!(answer(), "right");
        assert!(select(Some("integer.add_wraps")));
        assert_eq!(answer(), "wrong");
        assert!(!select(Some("no.such_fault")));
        assert_eq!(answer(), "wrong");
        assert!(select(Some("integer.negate_wraps")));
        assert_eq!(answer(), "right");
        assert!(select(None));
    }
}
