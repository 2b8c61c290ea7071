internal import Acoustics
internal import Foundation
internal import Testing

@Suite struct BandEnergyTests {
    @Test("the band's energy is a tone's mean square, and only inside the band")
    func bands() {
        let band = BandEnergy(rate: 48_000)
        let tone = { (hertz: Double) in
            (0..<4800).map { Float(0.5 * sin(2 * Double.pi * hertz * Double($0) / 48_000)) }
        }
        // 0.5² / 2 = 0.125, which is −6.02 dB of full scale.
        #expect(abs(band.level(of: tone(18_000), at: 480).meanSquare - 0.125) < 0.002)
        #expect(abs(band.level(of: tone(18_033), at: 480).decibels + 6.02) < 0.1)
        #expect(band.level(of: tone(1_000), at: 480).decibels < -60)
        #expect(band.level(of: tone(15_000), at: 480).decibels < -60)
        let profile = band.profile(of: [Float](repeating: 0, count: 4800) + tone(18_000))
        #expect(profile.count == 20)
        #expect(profile.first { $0.decibels > -20 }?.position == 4800)
    }
}
