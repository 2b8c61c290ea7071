package import Timing

/// Notices that the path to a host has become another one, by the least delays of the bursts; pure.
///
/// A busy path has quick datagrams among its slow ones, and the least delay of a few bursts stays what it was. When that
/// too is another, a cable, a switch or a route is: the bound follows by itself, and the operator should know why.
package struct PathWatch: Sendable {
    /// So many bursts say what the path is, and as many that it is another.
    private static let count = 6

    private var usual: Interval?
    private var recent: [Interval] = []

    package init() {}

    /// Takes the least delay of a burst in; gives back the old and the new delay of a path that has changed.
    package mutating func look(_ delay: Interval) -> (before: Interval, after: Interval)? {
        recent.append(delay)
        guard recent.count >= Self.count else { return nil }
        if recent.count > Self.count { recent.removeFirst() }
        guard let least = recent.min(), let most = recent.max() else { return nil }
        guard let usual else {
            self.usual = least
            return nil
        }
        // A machine without real-time priority that is busy makes all datagrams some 100 µs later; that is no other path.
        let margin = Interval.microseconds(200)
        guard least > usual * 3 + margin || most * 3 + margin < usual else {
            if most < usual { self.usual = most }
            return nil
        }
        self.usual = least
        recent = []
        return (usual, least)
    }
}
