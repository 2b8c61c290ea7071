internal import Testing

@testable internal import Alignment

@Suite struct HostTimelineTests {
    private func knot(_ host: Int64, _ offset: Int64, skew: Double = 0, bound: Int64? = 100, skewBound: Double? = 0)
        -> HostTimeline.Knot
    {
        HostTimeline.Knot(host: host, offset: offset, skew: skew, bound: bound, skewBound: skewBound)
    }

    @Test("Between two knots the offset runs straight, outside of them by the skew")
    func interpolation() throws {
        // The host gains 10 µs in 1 s: 10 ppm.
        let line = try #require(
            HostTimeline([knot(1_000_000_000, 0, skew: 10e-6), knot(2_000_000_000, 10_000, skew: 10e-6)]))
        #expect(line.common(1_000_000_000) == 1_000_000_000)
        #expect(line.common(1_500_000_000) == 1_500_000_000 - 5000)
        #expect(line.common(3_000_000_000) == 3_000_000_000 - 20_000)
        #expect(line.common(0) == 10_000)
    }

    @Test("Stamps beyond 2^53 keep their last digit")
    func exact() throws {
        let base: Int64 = 4_000_000_000_000_000_001
        let line = try #require(HostTimeline([knot(base, 1_234_567_890_123_456_789)]))
        #expect(line.common(base + 2) == base + 2 - 1_234_567_890_123_456_789)
    }

    @Test("The bound grows outside of the knots, and an unknown one stays unknown")
    func bounds() throws {
        // 100 + 1 s × 1 ppm + 1 for rounding; between the knots the larger of the two.
        let line = try #require(
            HostTimeline([knot(0, 0, bound: 100, skewBound: 1e-6), knot(1_000_000_000, 0, bound: 300, skewBound: 1e-6)])
        )
        #expect(line.bound(at: -1_000_000_000) == 1101)
        #expect(line.bound(at: 500_000_000) == 301)
        // The skew's error isn't known: the bound holds at its instant alone.
        let loose = try #require(HostTimeline([knot(0, 0, bound: 100, skewBound: nil)]))
        #expect(loose.bound(at: 0) == 100)
        #expect(loose.bound(at: 1) == nil)
        #expect(try #require(HostTimeline([knot(0, 0, bound: nil)])).bound(at: 5) == nil)
        #expect(HostTimeline.identity.bound(at: 5) == 0)
    }

    @Test("A rough early exchange doesn't spoil what a later one has proved")
    func dominance() throws {
        // 1 s later the offset is known to 1 µs, and by the skew's 10 ppm to 11 µs at the first; that beats 5 ms.
        let line = try #require(
            HostTimeline([
                knot(0, 4_000_000, bound: 5_000_000, skewBound: 10e-6),
                knot(1_000_000_000, 0, bound: 1000, skewBound: 10e-6),
            ]))
        #expect(line.offset(at: 0) == 0)
        #expect(line.bound(at: 0) == 11_001)
    }

    @Test("Mappings that no clock could have are refused")
    func contradictions() {
        #expect(HostTimeline([]) == nil)
        #expect(HostTimeline([knot(0, 0, skew: 0.5)]) == nil)
        // 1 s of offset in 1 s of time.
        #expect(HostTimeline([knot(0, 0), knot(1_000_000_000, 1_000_000_000)]) == nil)
        #expect(HostTimeline([knot(0, .min), knot(1, .max)]) == nil)
    }

    @Test("Nanoseconds are written as exact decimals")
    func decimals() {
        #expect(Decimal9.milliseconds(-2_333_333) == "-2.333333")
        #expect(Decimal9.milliseconds(500_000) == "0.5")
        #expect(Decimal9.milliseconds(-1) == "-0.000001")
        #expect(Decimal9.seconds(0) == "0.0")
        #expect(Decimal9.seconds(9_007_199_254_740_993) == "9007199.254740993")
    }
}
