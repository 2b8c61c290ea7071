internal import Protocol
internal import Testing
internal import Timing

@testable internal import Agent

struct LeaseKeeperTests {
    private let ours = UniqueID(unchecked: String(repeating: "a", count: 32))
    private let theirs = UniqueID(unchecked: String(repeating: "b", count: 32))

    private func at(_ seconds: Double) -> Timestamp<HostTime> { Timestamp(nanoseconds: 0) + .seconds(seconds) }

    private func ask(_ coordinator: UniqueID, _ name: String, _ seconds: Double = 10) -> LeaseRequest {
        LeaseRequest(coordinator: coordinator, name: name, length: .seconds(seconds))
    }

    @Test("one coordinator at a time; the other is told who holds it")
    func one() throws {
        var lease = LeaseKeeper(host: HostID(unchecked: "left"))
        #expect(try lease.request(ask(ours, "desk"), identity: "K1", at: at(0)).until == at(10))
        let refusal = #expect(throws: Refusal.self) {
            try lease.request(ask(theirs, "laptop"), identity: "K2", at: at(9))
        }
        #expect(refusal?.code == .leasedToOther)
        #expect(refusal?.message.contains("desk") == true)
        #expect(throws: Refusal.self) { try lease.check("K2", doing: .arm, at: at(9)) }
        try lease.check("K1", doing: .arm, at: at(9))
    }

    @Test("heartbeats of the holder renew it, those of others don't")
    func heartbeats() throws {
        var lease = LeaseKeeper(host: HostID(unchecked: "left"))
        _ = try lease.request(ask(ours, "desk"), identity: "K1", at: at(0))
        lease.heard(from: "K1", at: at(5))
        #expect(lease.deadline == at(15))
        lease.heard(from: "K2", at: at(6))
        #expect(lease.deadline == at(15))
        #expect(lease.expire(at: at(14.9)) == nil)
        #expect(lease.expire(at: at(15))?.name == "desk")
        #expect(lease.expire(at: at(16)) == nil)
        _ = try lease.request(ask(theirs, "laptop"), identity: "K2", at: at(16))
    }

    @Test("a lease is given back, is never longer than a minute, and commands need one")
    func ends() throws {
        var lease = LeaseKeeper(host: HostID(unchecked: "left"))
        #expect(try lease.request(ask(ours, "desk", 1e9), identity: "K1", at: at(0)).until == at(60))
        _ = try lease.request(ask(ours, "desk", 0), identity: "K1", at: at(1))
        let refusal = #expect(throws: Refusal.self) { try lease.check("K1", doing: .stop, at: at(1)) }
        #expect(refusal?.code == .notLeased)
        _ = try lease.request(ask(ours, "desk", -5), identity: "K1", at: at(2))
        #expect(lease.holder(at: at(2)) == nil)
    }
}
