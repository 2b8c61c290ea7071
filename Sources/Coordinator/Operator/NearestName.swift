/// Finds what somebody may have meant.
package enum NearestName {
    /// The candidate with the fewest changed letters, if it is near enough to be meant.
    package static func of(_ word: String, in candidates: [String]) -> String? {
        let best = candidates.map { ($0, distance(word, $0)) }.min { ($0.1, $0.0) < ($1.1, $1.0) }
        guard let (name, distance) = best, distance <= max(1, min(word.count, name.count) / 2) else {
            return candidates.first { !word.isEmpty && $0.hasPrefix(word) }
        }
        return name
    }

    /// Levenshtein's distance: insertions, removals and replacements.
    static func distance(_ a: String, _ b: String) -> Int {
        let (a, b) = (Array(a.prefix(64)), Array(b.prefix(64)))
        var row = Array(0...b.count)
        for i in 0..<a.count {
            var diagonal = row[0]
            row[0] = i + 1
            for j in 0..<b.count {
                let replaced = diagonal + (a[i] == b[j] ? 0 : 1)
                diagonal = row[j + 1]
                row[j + 1] = min(replaced, row[j] + 1, row[j + 1] + 1)
            }
        }
        return row[b.count]
    }
}
