internal import Protocol
internal import Testing

@testable internal import Alignment

@Suite struct SoundEventsTests {
    private static let up = ChirpSpec(fromHz: 17_000, toHz: 19_000)

    private func list(_ seconds: [Double], _ specs: [ChirpSpec]? = nil) -> [(spec: ChirpSpec, time: Int64)] {
        seconds.enumerated().map { (specs?[$0] ?? Self.up, Int64(($1 * 1e9).rounded())) }
    }

    private func match(_ a: [(spec: ChirpSpec, time: Int64)], _ b: [(spec: ChirpSpec, time: Int64)]) -> SoundEvents
        .Match?
    {
        guard case .found(let match) = SoundEvents.match(a, to: b, reach: 45e6) else { return nil }
        return match
    }

    @Test("The offset is the one at which most sweeps agree")
    func pattern() throws {
        // 1000 s apart; two of five are missing, and one of its own is nobody else's.
        let found = try #require(match(list([1000, 1003.01, 1007.02, 1011]), list([0, 1, 3, 7, 9])))
        #expect(found.pairs == [0: 0, 1: 2, 2: 3])
        #expect(abs(found.offset - 1_000_000_000_000) < 45_000_000)
    }

    @Test("A pattern that fits in several ways is unknown")
    func ambiguity() {
        // Equal steps: each shift by a step explains as many.
        #expect(match(list([0, 2]), list([100, 102, 104])) == nil)
        // One sweep against two of its kind.
        #expect(match(list([5]), list([100, 200])) == nil)
    }

    @Test("Different sweeps are never the same one")
    func sweeps() throws {
        let down = Self.up.reversed
        #expect(match(list([5], [down]), list([100, 200], [Self.up, down]))?.pairs == [0: 1])
        #expect(match(list([5], [down]), list([100], [Self.up])) == nil)
    }

    @Test("Crystals that are 100 ppm apart for an hour still show one pattern")
    func drift() throws {
        let found = try #require(match(list([10, 3610.36]), list([0, 3600])))
        #expect(found.pairs.count == 2)
    }

    @Test("Wild stamps don't overflow")
    func wild() {
        let wild: [(spec: ChirpSpec, time: Int64)] = [(Self.up, .min), (Self.up, .max), (Self.up, 0)]
        _ = match(wild, wild)
        _ = match(wild, list([0, 1]))
    }
}
