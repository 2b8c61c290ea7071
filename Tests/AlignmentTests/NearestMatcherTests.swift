internal import TestSupport
internal import Testing

@testable internal import Alignment

@Suite struct NearestMatcherTests {
    @Test("Each instant gets the nearest sample; of two equally near ones the earlier")
    func table() {
        // |10-9|=1 < |12-10|=2 → 9; 15 is 3 from 12 and 5 from 20 → 12; 16 is 4 from both → the earlier; beyond the ends
        // the ends.
        let other: [Int64] = [0, 9, 12, 20]
        #expect(NearestMatcher.match([-50, 10, 15, 16, 17, 99][...], to: other) == [0, 1, 2, 2, 3, 3])
    }

    @Test("Equal stamps don't hide what comes after them")
    func equalStamps() {
        #expect(NearestMatcher.match([1, 9, 10][...], to: [0, 0, 0, 10, 10]) == [0, 3, 3])
        #expect(NearestMatcher.match([5][...], to: [5, 5, 5]) == [0])
    }

    @Test("Merging finds what trying every sample finds", arguments: 0..<50)
    func property(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        func list() -> [Int64] {
            (0..<Int.random(in: 1...60, using: &random)).map { _ in Int64.random(in: -100...100, using: &random) }
                .sorted()
        }
        let (instants, other) = (list(), list())
        let expected = instants.map { instant in
            other.indices.min { (abs(other[$0] - instant), $0) < (abs(other[$1] - instant), $1) } ?? -1
        }
        #expect(NearestMatcher.match(instants[...], to: other) == expected)
    }
}
