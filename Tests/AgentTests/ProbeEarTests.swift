internal import Acoustics
internal import Devices
internal import Foundation
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@testable internal import Agent

/// What a microphone says to the sweeps of a sound check, from made recordings.
@Suite struct ProbeEarTests {
    private static let begin = Timestamp<HostTime>(nanoseconds: 50_000_000_000)
    private static let id = StreamID(unchecked: "mic")

    /// A recording that begins half a second before the sweep: noise of a variance, and the sweep 12 ms late.
    private static func samples(
        _ spec: ChirpSpec, rate: Int, amplitude: Double, noise: Double, channels: Int = 1, in channel: Int = 1
    ) -> [Sample] {
        var generator = SeededGenerator(seed: 9)
        let sweep = Chirp.samples(spec, rate: rate)
        let place = rate / 2 + rate * 12 / 1000
        let count = rate * 3 / 2
        var samples: [Sample] = []
        let block = rate / 50
        for start in stride(from: 0, to: count, by: block) {
            var bytes: [UInt8] = []
            for i in start..<start + block {
                for c in 1...channels {
                    // A uniform number between ±1 has a variance of a third.
                    var value = noise * 3.0.squareRoot() * Double.random(in: -1...1, using: &generator)
                    if c == channel, (place..<place + sweep.count).contains(i) {
                        value += amplitude / spec.amplitude * Double(sweep[i - place])
                    }
                    let word = UInt16(bitPattern: Int16((value * 32_767).rounded()))
                    bytes += [UInt8(truncatingIfNeeded: word), UInt8(word >> 8)]
                }
            }
            let capture = begin - .milliseconds(500) + .seconds(Double(start) / Double(rate))
            samples.append(
                Sample(payload: .audio(bytes, frames: block), capture: capture, uncertainty: .zero, arrival: capture))
        }
        return samples
    }

    private static func hearing(
        _ preset: ChirpPreset, rate: Int = 48_000, amplitude: Double, noise: Double, channels: Int = 1,
        in channel: Int = 1
    ) throws -> SoundCheckReport.Hearing {
        let spec = try #require(preset.startSpec).probe
        let samples = samples(spec, rate: rate, amplitude: amplitude, noise: noise, channels: channels, in: channel)
        let ear = ProbeEar(
            id, AudioFormat(encoding: .s16, rate: rate, channels: channels), noise: samples, before: begin)
        return ear.hearing(of: SoundCheckCommand.Probe(preset: preset, spec: spec, at: begin), in: samples)
    }

    @Test(arguments: [ChirpPreset.ultrasonic, .audible], [0.3, 0.03, 0.003])
    func `A sweep is heard with the ratio that it has`(preset: ChirpPreset, amplitude: Double) throws {
        let noise = 0.003
        let heard = try Self.hearing(preset, amplitude: amplitude, noise: noise)
        #expect(heard.isHeard)
        // White noise has the band's share of half the rate; a sine has half its amplitude's square.
        let spec = try #require(preset.startSpec)
        let share = (spec.toHz - spec.fromHz) / 24_000
        let expected = 10 * log10(amplitude * amplitude / 2 / (noise * noise * share))
        #expect(abs(try #require(heard.signalToNoise) - expected) < 2)
        #expect(heard.limit == nil)
    }

    @Test func `Noise alone is no sweep`() throws {
        let heard = try Self.hearing(.ultrasonic, amplitude: 0, noise: 0.02)
        #expect(!heard.isHeard)
        #expect(abs(try #require(heard.noise) - 10 * log10(0.0004 * 2000 / 24_000 / 0.5)) < 2)
    }

    @Test func `A microphone of 16 kHz can't hear it, and hears the audible one`() throws {
        let ultrasonic = try Self.hearing(.ultrasonic, rate: 16_000, amplitude: 0.1, noise: 0.001)
        #expect(!ultrasonic.isHeard)
        #expect(ultrasonic.limit?.hasPrefix("this microphone can't hear it: at 16000 Hz") == true)
        #expect(try Self.hearing(.audible, rate: 16_000, amplitude: 0.1, noise: 0.001).isHeard)
    }

    @Test func `A muted microphone is told from a deaf one`() throws {
        let heard = try Self.hearing(.ultrasonic, amplitude: 0, noise: 0)
        #expect(heard.limit?.contains("nothing but zeros") == true)
    }

    @Test func `Of several channels the one that hears counts`() throws {
        let heard = try Self.hearing(.ultrasonic, amplitude: 0.05, noise: 0.002, channels: 4, in: 3)
        #expect(heard.isHeard)
        #expect((heard.signalToNoise ?? 0) > 25)
    }

    @Test func `A microphone that delivers nothing says so`() throws {
        let spec = try #require(ChirpPreset.ultrasonic.startSpec).probe
        let ear = ProbeEar(
            Self.id, AudioFormat(encoding: .s16, rate: 48_000, channels: 1), noise: [], before: Self.begin)
        let heard = ear.hearing(of: SoundCheckCommand.Probe(preset: .ultrasonic, spec: spec, at: Self.begin), in: [])
        #expect(!heard.isHeard)
        #expect(heard.limit == "it delivers no sound")
    }
}
