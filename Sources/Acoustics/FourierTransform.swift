internal import CFFTW
internal import Glibc

/// FFTW's planner is the one part of it that threads can't share: whoever makes or frees a plan holds this.
///
/// A plain POSIX mutex, since a plan is a pointer, which `Mutex` doesn't let out.
private final class PlannerLock: @unchecked Sendable {
    static let shared = PlannerLock()
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    private init() {
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
    }

    func hold<Result>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }
}

/// Memory that FFTW's vector code likes, as floats.
///
/// A complex number is two of them, real part first. One owner, one thread.
package final class FourierBuffer {
    package let floats: UnsafeMutableBufferPointer<Float>

    /// Zeroed; `count` floats.
    package init(count: Int) {
        guard let memory = fftwf_alloc_real(max(count, 2)) else { preconditionFailure("no memory for \(count) floats") }
        floats = UnsafeMutableBufferPointer(start: memory, count: max(count, 2))
        floats.initialize(repeating: 0)
    }

    deinit { fftwf_free(floats.baseAddress) }
}

/// A transform of one length, planned once.
///
/// Concurrency: FFTW promises that a finished plan can be run by many threads at once, each on its own buffers.
package final class FourierTransform: @unchecked Sendable {
    package enum Kind: Sendable {
        /// `length` reals to length/2 + 1 complex numbers, e^(−j…), unscaled.
        case forwardReal
        /// length/2 + 1 complex numbers to `length` reals, e^(+j…), unscaled; the input is destroyed.
        case backwardReal
        /// Complex to complex, e^(+j…), unscaled.
        case backwardComplex
    }

    package let length: Int
    package let kind: Kind
    private let plan: fftwf_plan

    /// A plan by FFTW's estimate, which takes milliseconds; a length of small primes is fast.
    package init(_ kind: Kind, length: Int) {
        precondition(length > 1 && length <= 1 << 26, "a transform of \(length)")
        self.kind = kind
        self.length = length
        let (a, b) = (FourierBuffer(count: 2 * length + 2), FourierBuffer(count: 2 * length + 2))
        let n = Int32(length)
        let made: fftwf_plan? = PlannerLock.shared.hold {
            switch kind {
            case .forwardReal: fftwf_plan_dft_r2c_1d(n, a.reals, b.complexes, UInt32(FFTW_ESTIMATE))
            case .backwardReal: fftwf_plan_dft_c2r_1d(n, a.complexes, b.reals, UInt32(FFTW_ESTIMATE))
            case .backwardComplex:
                fftwf_plan_dft_1d(n, a.complexes, b.complexes, FFTW_BACKWARD, UInt32(FFTW_ESTIMATE))
            }
        }
        guard let made else { preconditionFailure("FFTW can't plan \(kind) of \(length)") }
        plan = made
    }

    deinit { PlannerLock.shared.hold { fftwf_destroy_plan(plan) } }

    /// Runs the transform; both buffers must hold it.
    package func run(_ input: FourierBuffer, into output: FourierBuffer) {
        let complexFloats = kind == .backwardComplex ? 2 * length : length + 2
        let (need, give) =
            switch kind {
            case .forwardReal: (length, complexFloats)
            case .backwardReal: (complexFloats, length)
            case .backwardComplex: (complexFloats, complexFloats)
            }
        precondition(input.floats.count >= need && output.floats.count >= give, "buffers too short for \(length)")
        switch kind {
        case .forwardReal: fftwf_execute_dft_r2c(plan, input.reals, output.complexes)
        case .backwardReal: fftwf_execute_dft_c2r(plan, input.complexes, output.reals)
        case .backwardComplex: fftwf_execute_dft(plan, input.complexes, output.complexes)
        }
    }
}

extension FourierBuffer {
    fileprivate var reals: UnsafeMutablePointer<Float>? { floats.baseAddress }

    fileprivate var complexes: UnsafeMutablePointer<fftwf_complex>? {
        UnsafeMutableRawPointer(floats.baseAddress)?.assumingMemoryBound(to: fftwf_complex.self)
    }
}

extension Int {
    /// The smallest power of two that isn't smaller.
    var powerOfTwoAbove: Int {
        var power = 2
        while power < self { power <<= 1 }
        return power
    }
}
