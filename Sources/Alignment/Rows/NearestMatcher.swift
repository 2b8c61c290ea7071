/// Finds for each instant of one sorted list the nearest of another one, by merging them.
enum NearestMatcher {
    /// The place in `other` of the sample that is nearest to each of `instants`; of two equally near ones the earlier.
    ///
    /// Both lists rise; `other` isn't empty. Differences must fit Int64.
    static func match(_ instants: ArraySlice<Int64>, to other: [Int64]) -> [Int] {
        var places: [Int] = []
        places.reserveCapacity(instants.count)
        var place = 0
        for instant in instants {
            while place + 1 < other.count && other[place + 1] <= instant { place += 1 }
            // Now `place` is the last one that isn't later, or the first of all.
            let next = place + 1
            let isNextNearer = next < other.count && other[next] - instant < (instant - other[place]).magnitude64
            places.append(isNextNearer ? next : firstOfEqual(place, other))
        }
        return places
    }

    /// Of samples with one and the same stamp the first.
    private static func firstOfEqual(_ place: Int, _ other: [Int64]) -> Int {
        var place = place
        while place > 0 && other[place - 1] == other[place] { place -= 1 }
        return place
    }
}

extension Int64 {
    fileprivate var magnitude64: Int64 { self < 0 ? 0 &- self : self }
}
