internal import Acoustics
internal import Glibc
package import TestSupport

/// A point in a room, metres.
package struct Place: Sendable {
    package var x: Double
    package var y: Double
    package var z: Double

    package init(_ x: Double, _ y: Double, _ z: Double) { (self.x, self.y, self.z) = (x, y, z) }

    package func distance(to other: Place) -> Double {
        ((x - other.x) * (x - other.x) + (y - other.y) * (y - other.y) + (z - other.z) * (z - other.z)).squareRoot()
    }
}

/// A box with walls that all reflect the same share: the image source method (Allen and Berkley 1979).
package struct RoomSimulator: Sendable {
    package static let soundSpeed = 343.0

    package var size: Place
    package var reverberation: Double
    /// Share of the amplitude that a wall gives back, by Eyring's formula.
    package let reflection: Double

    /// Nil when the walls would have to swallow more than 95 %.
    package init?(size: Place, reverberation: Double) {
        self.size = size
        self.reverberation = reverberation
        let volume = size.x * size.y * size.z
        let surface = 2 * (size.x * size.y + size.y * size.z + size.z * size.x)
        let absorbed = 1 - exp(-0.161 * volume / (surface * reverberation))
        guard absorbed < 0.95 else { return nil }
        reflection = (1 - absorbed).squareRoot()
    }

    /// A room of 4–10 × 3–8 × 2.4–3.5 m with RT60 of 0.2–0.6 s.
    package static func random(_ random: inout SeededGenerator) -> RoomSimulator {
        while true {
            let size = Place(
                .random(in: 4...10, using: &random), .random(in: 3...8, using: &random),
                .random(in: 2.4...3.5, using: &random))
            let time = Double.random(in: 0.2...0.6, using: &random)
            if let room = RoomSimulator(size: size, reverberation: time) { return room }
        }
    }

    /// A place at least 0.3 m from the walls, 0.5–1.8 m high.
    package func place(_ random: inout SeededGenerator) -> Place {
        Place(
            .random(in: 0.3...size.x - 0.3, using: &random), .random(in: 0.3...size.y - 0.3, using: &random),
            .random(in: 0.5...1.8, using: &random))
    }

    /// Two places with a distance drawn evenly from 0.5 m to 8 m, or to what the room has.
    package func pair(_ random: inout SeededGenerator) -> (Place, Place) {
        let diagonal = (size.x * size.x + size.y * size.y).squareRoot()
        let wanted = Double.random(in: 0.5...min(8, 0.9 * diagonal - 0.8), using: &random)
        while true {
            let (a, b) = (place(&random), place(&random))
            if abs(a.distance(to: b) - wanted) < 0.1 { return (a, b) }
        }
    }

    /// The response from one place to another at a sample rate, over `duration` seconds: band-limited, exact delays.
    ///
    /// Sample 0 is the emission. A path of one metre has the amplitude 1.
    package func response(from source: Place, to target: Place, rate: Double, duration: Double) -> [Float] {
        var response = [Float](repeating: 0, count: Int(duration * rate) + 64)
        let limit = Self.soundSpeed * duration
        let axes = [
            Self.images(source.x, target.x, size.x, limit), Self.images(source.y, target.y, size.y, limit),
            Self.images(source.z, target.z, size.z, limit),
        ]
        let gains = (0..<400).map { pow(reflection, Double($0)) }
        let kernel = FractionalDelay.shared
        response.withUnsafeMutableBufferPointer { output in
            for x in axes[0] {
                for y in axes[1] where x.square + y.square < limit * limit {
                    for z in axes[2] {
                        let square = x.square + y.square + z.square
                        guard square < limit * limit else { continue }
                        let distance = max(square.squareRoot(), 0.01)
                        let order = x.order + y.order + z.order
                        guard order < gains.count, gains[order] / distance > 1e-6 else { continue }
                        kernel.add(
                            Float(gains[order] / distance), at: distance / Self.soundSpeed * rate, to: output)
                    }
                }
            }
        }
        return response
    }

    private static func images(_ source: Double, _ target: Double, _ length: Double, _ limit: Double)
        -> [(square: Double, order: Int)]
    {
        let count = Int(limit / (2 * length)) + 1
        var result: [(square: Double, order: Int)] = []
        for n in -count...count {
            let shift = 2 * Double(n) * length
            let (even, odd) = (shift + source - target, shift - source - target)
            result.append((even * even, abs(2 * n)))
            result.append((odd * odd, abs(2 * n - 1)))
        }
        return result
    }
}

/// A pulse between the samples: a sinc of 32 taps under a Kaiser window, flat to a thousandth up to 0.85 of Nyquist.
package struct FractionalDelay: Sendable {
    package static let shared = FractionalDelay()
    private static let taps = 32
    private static let phases = 512
    private let table: [Float]

    private init() {
        var table: [Float] = []
        let half = Double(Self.taps) / 2
        for phase in 0..<Self.phases {
            for tap in 0..<Self.taps {
                let t = Double(tap) - half + 1 - Double(phase) / Double(Self.phases)
                let window = Self.bessel(8 * max(1 - (t / half) * (t / half), 0).squareRoot()) / Self.bessel(8)
                let sinc = abs(t) < 1e-12 ? 1 : sin(Double.pi * t) / (Double.pi * t)
                table.append(Float(sinc * window))
            }
        }
        self.table = table
    }

    private static func bessel(_ x: Double) -> Double {
        var (sum, term) = (1.0, 1.0)
        for k in 1..<40 {
            term *= (x / 2 / Double(k)) * (x / 2 / Double(k))
            sum += term
        }
        return sum
    }

    /// The phase is rounded to 1/512 of a sample: 20 ns at 48 kHz.
    package func add(_ gain: Float, at position: Double, to output: UnsafeMutableBufferPointer<Float>) {
        let fine = Int((position * Double(Self.phases)).rounded())
        let (whole, phase) = (fine / Self.phases, fine % Self.phases)
        let start = whole - Self.taps / 2 + 1
        for tap in 0..<Self.taps where start + tap >= 0 && start + tap < output.count {
            output[start + tap] += gain * table[phase * Self.taps + tap]
        }
    }
}
