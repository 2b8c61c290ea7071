/// Which sequence numbers were seen: each is taken once, and at most 64 behind the newest.
struct ReplayWindow: Sendable {
    private var newest: UInt64?
    /// Bit i: the number `newest - i` was seen.
    private var seen: UInt64 = 0

    /// True when the number is new, and then it is noted.
    mutating func admit(_ sequence: UInt64) -> Bool {
        guard let newest else {
            self.newest = sequence
            seen = 1
            return true
        }
        if sequence > newest {
            let step = sequence - newest
            seen = step >= 64 ? 1 : seen << step | 1
            self.newest = sequence
            return true
        }
        let behind = newest - sequence
        guard behind < 64, seen & 1 << behind == 0 else { return false }
        seen |= 1 << behind
        return true
    }
}
