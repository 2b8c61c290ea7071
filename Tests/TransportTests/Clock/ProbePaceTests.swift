internal import Testing
internal import Timing

@testable internal import Transport

@Suite struct ProbePaceTests {
    private let schedule = ProbeSchedule()

    private func at(_ ms: Int64) -> Timestamp<RigTime> { Timestamp(nanoseconds: ms * 1_000_000) }

    @Test(
        "searching, fast at the start, slower when settled, faster when the path is worse or silent, fast after a surprise"
    )
    func paces() {
        var pace = ProbePace(schedule: schedule)
        #expect(pace.pause(at: at(0)) == schedule.searchPause)
        #expect(pace.burst(at: at(0)) == schedule.quickBurst)
        pace.note(sent: 2, answered: 0, leastDelay: nil, at: at(0))
        #expect(pace.pause(at: at(0)) == schedule.searchPause)
        pace.note(sent: 16, answered: 16, leastDelay: .microseconds(200), at: at(1000))
        #expect(pace.pause(at: at(1000)) == schedule.quickPause)
        #expect(pace.pause(at: at(2499)) == schedule.quickPause)
        #expect(pace.pause(at: at(2500)) == schedule.steadyPause)
        #expect(pace.burst(at: at(2500)) == schedule.steadyBurst)
        // Twice the delay and more: the bound would be twice as wide.
        pace.note(sent: 8, answered: 8, leastDelay: .microseconds(421), at: at(3000))
        #expect(pace.pause(at: at(3000)) == schedule.disturbedPause)
        #expect(pace.burst(at: at(3000)) == schedule.quickBurst)
        pace.note(sent: 8, answered: 8, leastDelay: .microseconds(400), at: at(4000))
        #expect(pace.pause(at: at(4000)) == schedule.steadyPause)
        pace.note(sent: 8, answered: 5, leastDelay: .microseconds(200), at: at(5000))
        #expect(pace.pause(at: at(5000)) == schedule.disturbedPause)
        pace.note(sent: 2, answered: 0, leastDelay: nil, at: at(6000))
        #expect(pace.pause(at: at(6000)) == schedule.disturbedPause)
        pace.hurry(at: at(7000))
        #expect(pace.pause(at: at(7100)) == schedule.quickPause)
        pace.lost()
        #expect(pace.pause(at: at(9000)) == schedule.searchPause)
    }

    @Test("with many hosts each has its turn more seldom, never so seldom that its clock is in holdover after 3 s")
    func manyHosts() {
        var pace = ProbePace(schedule: schedule)
        pace.note(sent: 16, answered: 16, leastDelay: .microseconds(200), at: at(0))
        #expect(pace.pause(at: at(100), hosts: 64) == schedule.quickPause)
        #expect(pace.pause(at: at(5000), hosts: 25) == .milliseconds(1000))
        #expect(pace.pause(at: at(5000), hosts: 64) == .milliseconds(2560))
        pace.note(sent: 8, answered: 2, leastDelay: .microseconds(200), at: at(6000))
        #expect(pace.pause(at: at(6000), hosts: 64) == .milliseconds(640))
    }

    @Test("a path that has become slower for good is the usual one after a while")
    func newPath() {
        var pace = ProbePace(schedule: schedule)
        pace.note(sent: 16, answered: 16, leastDelay: .microseconds(100), at: at(0))
        var disturbed = 0
        for second in 10..<100 {
            pace.note(sent: 16, answered: 16, leastDelay: .microseconds(900), at: at(Int64(second) * 1000))
            if pace.pause(at: at(Int64(second) * 1000)) == schedule.disturbedPause { disturbed += 1 }
        }
        #expect((59...60).contains(disturbed))
    }
}
