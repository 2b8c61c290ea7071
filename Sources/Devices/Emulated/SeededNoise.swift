internal import Glibc

/// Random numbers that are the same for the same seed (SplitMix64), also normally distributed.
package struct SeededNoise: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    /// A seed from words: FNV-1a of their bytes.
    package static func seed(_ words: String...) -> UInt64 {
        words.joined(separator: "/").utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }

    /// 0 ≤ x < 1.
    package mutating func uniform() -> Double { Double(next() >> 11) * 0x1p-53 }

    /// Of mean 0 and standard deviation 1, never beyond ±3.7.
    package mutating func normal() -> Double { Double(Self.quantiles[Int(next() >> 52)]) }

    /// Adds normal noise to samples: five of them from each random number.
    mutating func add(to samples: inout [Float], deviation: Float) {
        guard deviation > 0 else { return }
        let count = samples.count
        Self.quantiles.withUnsafeBufferPointer { quantiles in
            samples.withUnsafeMutableBufferPointer { samples in
                var index = 0
                while index < count {
                    var bits = next()
                    for place in index..<min(index + 5, count) {
                        samples[place] += deviation * quantiles[Int(bits & 4095)]
                        bits >>= 12
                    }
                    index += 5
                }
            }
        }
    }

    /// The normal distribution's quantiles at (i + ½)/4096, by Newton's method on erfc, from the middle outwards.
    private static let quantiles: [Float] = {
        var upper: [Double] = []
        var x = 0.0
        for i in 0..<2048 {
            let target = (Double(i) + 0.5) / 4096
            for _ in 0..<6 {
                let missing = target - 0.5 * erf(x / 2.squareRoot())
                x += missing * (2 * Double.pi).squareRoot() * exp(x * x / 2)
            }
            upper.append(x)
        }
        return (upper.reversed().map { -$0 } + upper).map { Float($0) }
    }()
}
